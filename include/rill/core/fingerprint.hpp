#pragma once

#include <rill/core/random.hpp>

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

/// The FNV-1a hash of a text, such as a policy's name.
constexpr std::uint64_t fingerprint(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
    return hash;
}

/// A policy with options that all ranks must have alike: `visit_options(visit)` calls `visit(name, number)` for each,
/// in an order that does not change. `visit` takes any arithmetic type.
template <class Policy>
concept HasOptions =
    requires(const Policy& policy, void (&visit)(const char*, double)) { policy.visit_options(visit); };

/// Hash of a policy's name and of its options (`HasOptions`), if it has any. Ranks compare it to check that their
/// policies are the same.
template <class Policy>
    requires requires { Policy::name; }
constexpr std::uint64_t fingerprint(const Policy& policy) {
    std::uint64_t hash = fingerprint(Policy::name);
    if constexpr (HasOptions<Policy>)
        policy.visit_options([&](const char*, auto value) {
            if constexpr (std::is_floating_point_v<decltype(value)>)
                hash = mix64(hash, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
            else
                hash = mix64(hash, static_cast<std::uint64_t>(value));
        });
    return hash;
}

/// The fingerprint of a policy, or 0 if it has no name: of policies that users may write without one.
template <class Policy>
constexpr std::uint64_t fingerprint_if_named(const Policy& policy) {
    if constexpr (requires { fingerprint(policy); })
        return fingerprint(policy);
    else
        return 0;
}

/// A hash as an option of a call holds it (`call_options`).
constexpr std::uint32_t option_hash(std::uint64_t hash) { return static_cast<std::uint32_t>(mix64(hash)); }

}}  // namespace rill::RILL_ABI
