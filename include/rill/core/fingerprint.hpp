#pragma once

#include <rill/core/random.hpp>

#include <cstdint>

namespace rill::inline RILL_ABI {

/// Hash of a policy's name; FNV-1a.
constexpr std::uint64_t fingerprint(const char* text) {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001B3U;
    return hash;
}

/// Hash of a policy, by which ranks compare theirs: its name and, where it has parameters, its own `fingerprint()`.
template <class Policy>
    requires requires { Policy::name; }
constexpr std::uint64_t fingerprint(const Policy& policy) {
    if constexpr (requires { policy.fingerprint(); })
        return mix64(fingerprint(Policy::name), policy.fingerprint());
    else
        return fingerprint(Policy::name);
}

}  // namespace rill::inline RILL_ABI
