#pragma once

#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

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
    next_round = 8,  ///< hands down the state that begins a round
    contribute = 9,  ///< sends a contribution to a round
    end_rounds = 10,
    round_over = 11,  ///< tells a rank that its contribution would come too late
    departure = 12    ///< no call: the rank's body has returned, so that it will never make this one
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
        case operation::next_round: return "next_round";
        case operation::contribute: return "contribute";
        case operation::end_rounds: return "end_rounds";
        case operation::round_over: return "round_over";
        case operation::departure: return "departure";
        case operation::none: break;
    }
    return "none";
}

/// What the options of a call are of.
enum class options_of : std::uint32_t { nothing, group, collective, rounds, coded_rounds, buckets, link_probe };

/// What all ranks must have alike besides types and dimension: up to five hashes, so that ranks that differ learn in
/// what. 0 where there is nothing.
struct call_options {
    options_of set = options_of::nothing;
    std::array<std::uint32_t, 5> hashes{};

    friend constexpr bool operator==(const call_options&, const call_options&) = default;
};

/// Of a collective: which of its hashes is the compressor's.
inline constexpr std::size_t compressor_option = 2;

/// The name of an option in messages: "root".
constexpr const char* option_name(options_of set, std::size_t i) {
    constexpr const char* names[][5] = {
        {"option", "option", "option", "option", "option"},
        {"version", "topology", "seed", "timeout", "option"},
        {"aggregator", "coding", "compressor", "root", "number of chunks"},
        {"tree", "completion", "staleness", "trigger", "option"},
        {"tree", "gradient code", "coding", "approximate_after", "option"},
        {"division into buckets", "option", "option", "option", "option"},
        {"first rank", "last rank", "number of repetitions", "option", "option"},
    };
    return names[static_cast<std::size_t>(set)][i];
}

/// What a rank calls. It must be the same on all ranks of a group; every frame carries its hash for comparison.
struct call_signature {
    std::uint64_t number = 0;  ///< how many operations this group has run before, plus one
    operation kind = operation::none;
    element_type element = element_type::none;
    std::uint8_t index_bytes = 0;  ///< 0 for dense streams
    std::uint64_t dimension = 0;
    call_options options{};

    constexpr std::uint32_t hash() const {
        const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32U | b; };
        const auto& more = options.hashes;
        const std::uint64_t types = static_cast<std::uint64_t>(kind) << 16U |
                                    static_cast<std::uint64_t>(element) << 8U | std::uint64_t{index_bytes};
        return static_cast<std::uint32_t>(mix64(number, types, dimension,
                                                pair(static_cast<std::uint32_t>(options.set), more[0]),
                                                pair(more[1], more[2]), pair(more[3], more[4])));
    }
    friend constexpr bool operator==(const call_signature&, const call_signature&) = default;
};

/// The tag of the messages of an operation.
constexpr std::uint32_t tag_of(std::uint64_t number) { return static_cast<std::uint32_t>(number); }

/// How many calls of a context a transport remembers at least, so that `inquire` can return them.
inline constexpr std::size_t calls_remembered = 64;

}}  // namespace rill::RILL_ABI
