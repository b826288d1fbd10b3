#pragma once

#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rill { inline namespace RILL_ABI {

/// The collective operations; the numbers are part of the wire format.
enum class operation : std::uint8_t {
    none = 0,
    handshake = 1,
    all_reduce = 2,
    reduce_scatter = 3,
    all_gather = 4,
    reduce = 5,
    broadcast = 6,
    barrier = 7,
    departure = 8  ///< no call: the rank's body has returned, so that it will never make this one
};

/// The name of an operation in error messages, such as "all_reduce".
constexpr const char* name(operation op) {
    switch (op) {
        case operation::handshake: return "handshake";
        case operation::all_reduce: return "all_reduce";
        case operation::reduce_scatter: return "reduce_scatter";
        case operation::all_gather: return "all_gather";
        case operation::reduce: return "reduce";
        case operation::broadcast: return "broadcast";
        case operation::barrier: return "barrier";
        case operation::departure: return "departure";
        case operation::none: break;
    }
    return "none";
}

/// What all ranks must have alike besides types and dimension: up to five hashes, so that ranks that differ learn in
/// what. 0 where there is nothing.
using option_hashes = std::array<std::uint32_t, 5>;

/// The options of a call as all ranks compare them.
struct call_options {
    std::uint32_t set = 0;  ///< whose they are: `option_names::id`
    option_hashes hashes{};

    // Written out, because that of `std::array` is eight functions for the compiler.
    friend constexpr bool operator==(const call_options& a, const call_options& b) {
        for (std::size_t i = 0; i < a.hashes.size(); ++i)
            if (a.hashes[i] != b.hashes[i]) return false;
        return a.set == b.set;
    }
};

namespace detail {
constexpr std::uint32_t hash_of(const std::array<std::string_view, 5>& names) {
    std::uint64_t hash = 0;
    for (const std::string_view name : names) hash = mix64(hash, fingerprint(name));
    return option_hash(hash);
}
}  // namespace detail

/// The names of a call's options in messages, such as "root". Whoever makes calls has names of its own.
struct option_names {
    std::array<std::string_view, 5> names{};
    /// The option that index width and dimension follow from, if any: where that differs, they are not looked at.
    std::size_t decides_shape = ~std::size_t{0};
    std::uint32_t id = detail::hash_of(names);  ///< what ranks compare in place of the names

    constexpr call_options with(const option_hashes& hashes) const { return {id, hashes}; }
};

/// The names of no options.
inline constexpr option_names no_options{};

/// What a rank calls. It must be the same on all ranks of a group; every frame carries its hash for comparison.
struct call_signature {
    std::uint64_t number = 0;  ///< how many operations this group has run before, plus one
    operation kind = operation::none;
    element_type element = element_type::none;
    std::uint8_t index_bytes = 0;  ///< 0 for dense streams
    std::uint64_t dimension = 0;
    call_options options{};

    [[gnu::noinline]] constexpr std::uint32_t hash() const {
        const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32U | b; };
        const auto& more = options.hashes;
        const std::uint64_t types = static_cast<std::uint64_t>(kind) << 16U |
                                    static_cast<std::uint64_t>(element) << 8U | std::uint64_t{index_bytes};
        return static_cast<std::uint32_t>(mix64(number, types, dimension, pair(options.set, more[0]),
                                                pair(more[1], more[2]), pair(more[3], more[4])));
    }
    friend constexpr bool operator==(const call_signature&, const call_signature&) = default;
};

/// Whether an announcement is no call but a state of its rank, as a long wait is: a later one with its number replaces
/// it, so what was heard of it does not hold for ever.
constexpr bool is_state(const call_signature& announced) { return announced.kind == operation::none; }

/// The tag of the messages of an operation.
constexpr std::uint32_t tag_of(std::uint64_t number) { return static_cast<std::uint32_t>(number); }

/// How many calls of a context a transport remembers at least, so that `inquire` can return them.
inline constexpr std::size_t calls_remembered = 64;

}}  // namespace rill::RILL_ABI
