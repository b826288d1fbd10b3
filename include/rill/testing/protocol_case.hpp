#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// All that one run of a protocol depends on, besides the protocol: the same case makes the same run.
struct protocol_case {
    std::uint64_t seed = 0;  ///< of the network, of when ranks come, and of what the protocol draws for itself
    int ranks = 2;
    std::size_t size = 0;  ///< of the data, whatever the protocol takes that for
    bool plain = false;    ///< a uniform network without cards, jitter or computing; all ranks come at once
    fault_plan faults{};

    /// What the protocol may draw from.
    random_key key() const { return random_key{seed}.derive(1); }

    friend bool operator==(const protocol_case&, const protocol_case&) = default;
};

/// In one line, as `parse_protocol_case` reads it: `run 7 ranks 3 size 65 plain: seed 0; kill rank 2 after 3`.
inline std::string to_string(const protocol_case& of) {
    return "run " + std::to_string(of.seed) + " ranks " + std::to_string(of.ranks) + " size " +
           std::to_string(of.size) + (of.plain ? " plain" : "") + ": " + to_string(of.faults);
}

/// Throws `std::runtime_error` when the text is no case.
inline protocol_case parse_protocol_case(std::string_view text) {
    const std::string_view all = text;
    const auto refuse = [&] {
        throw std::runtime_error("rill: no case of a protocol ('run 7 ranks 3 size 65: seed 0; ...'): '" +
                                 std::string(all) + "'");
    };
    const auto take = [&](std::string_view word) {
        const bool is_next = text.substr(0, word.size()) == word;
        if (is_next) text.remove_prefix(word.size());
        return is_next;
    };
    const auto number = [&]<class Number>(std::string_view before, Number& value) {
        if (!take(before)) refuse();
        const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (trouble != std::errc{}) refuse();
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    };
    protocol_case of;
    number("run ", of.seed);
    number(" ranks ", of.ranks);
    number(" size ", of.size);
    of.plain = take(" plain");
    if (!take(":") || of.ranks < 1) refuse();
    of.faults = parse_fault_plan(text);
    return of;
}

/// How cases are drawn.
struct protocol_limits {
    int least_ranks = 2;
    int most_ranks = 16;
    std::size_t most_size = 2000;
    /// How long a rank of the protocol waits for others before it gives up. The network is fast against that: no
    /// message takes longer than a hundredth of it, but by a fault.
    duration timeout = seconds(10);
    /// Ranks come at most so late after the first; below half the timeout, so that who waits for whom can be told.
    duration latest_entry = seconds(4);
    /// Of virtual time: a run that goes on longer hangs.
    duration longest = seconds(10'000);
};

/// A random case: ranks, a size (0, 1, below the number of ranks and larger ones alike), faults of the kind. A pure
/// function of its arguments.
inline protocol_case draw_case(fault_kind kind, std::uint64_t seed, const protocol_limits& limits = {}) {
    RILL_EXPECTS(2 <= limits.least_ranks && limits.least_ranks <= limits.most_ranks,
                 "draw_case: needs at least two ranks");
    random_sequence draw(random_key{seed}.derive(2));
    protocol_case drawn{.seed = seed, .plain = draw.below(8) == 0};
    drawn.ranks = limits.least_ranks +
                  static_cast<int>(draw.below(static_cast<std::uint64_t>(limits.most_ranks - limits.least_ranks + 1)));
    const std::uint64_t bounds[] = {1, 2, static_cast<std::uint64_t>(drawn.ranks) + 1, 100, limits.most_size + 1};
    drawn.size = static_cast<std::size_t>(draw.below(bounds[draw.below(5)]));
    drawn.faults = draw_faults(kind, drawn.ranks, limits.timeout, random_key{seed}.derive(3));
    return drawn;
}

/// The network of a case: links, cards, jitter and computing times as its seed draws them, its faults.
inline simulated::network network_of(const protocol_case& of, const protocol_limits& limits = {}) {
    simulated::network net{.faults = of.faults,
                           .poll = microseconds(10),
                           .stack_bytes = std::size_t{256} << 10,
                           .longest = limits.longest};
    if (of.plain) return net;
    random_sequence draw(random_key{of.seed}.derive(4));
    const auto below = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(bound)));
    };
    const auto any_link = [&]() -> network_link {
        return {.latency = nanoseconds(below(limits.timeout.ns / 10'000)),
                .bandwidth = below(2) == 0 ? 0 : static_cast<std::uint64_t>(1'000'000 + below(1'000'000'000))};
    };
    net.seed = of.seed;
    net.jitter = below(2) == 0 ? duration{} : nanoseconds(below(limits.timeout.ns / 1'000));
    net.links = grouped_links{static_cast<int>(1 + below(of.ranks)), any_link(), any_link()};
    if (below(3) == 0) {
        const auto speed = static_cast<std::uint64_t>(10'000'000 + below(1'000'000'000));
        const bool both = below(2) == 0;
        net.cards = [=](rank_t) {
            return both ? network_card::full_duplex(speed) : network_card::single_receive(speed);
        };
    }
    net.computing = uniform_compute{{}, nanoseconds(1 + below(limits.timeout.ns / 1'000)), of.seed};
    return net;
}

/// When a rank enters its `step`-th call, after it has come to it: nothing, a little, or up to `latest_entry`.
inline duration entry_delay(const protocol_case& of, rank_t rank, int step, const protocol_limits& limits = {}) {
    if (of.plain) return {};
    random_sequence of_step(random_key{of.seed}.derive(5, step));
    const std::int64_t bounds[] = {0, limits.timeout.ns / 1'000, limits.latest_entry.ns};
    const std::int64_t bound = bounds[of_step.below(3)];
    random_sequence of_rank(random_key{of.seed}.derive(6, step, rank));
    return nanoseconds(static_cast<std::int64_t>(of_rank.below(static_cast<std::uint64_t>(bound) + 1)));
}

}}}  // namespace rill::RILL_ABI::testing
