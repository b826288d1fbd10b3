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

/// All that a run of a given protocol depends on: equal cases give equal runs.
struct protocol_case {
    std::uint64_t seed = 0;  ///< of the network, of the ranks' delays, and of the protocol's own draws
    int ranks = 2;
    std::size_t size = 0;  ///< of the data; its unit is the protocol's choice
    bool plain = false;    ///< a uniform network without cards, jitter or computing times; no rank enters late
    fault_plan faults{};

    /// The key of the protocol's own random numbers.
    random_key key() const { return random_key{seed}.derive(1); }

    friend bool operator==(const protocol_case&, const protocol_case&) = default;
};

/// Returns the case in one line, which `parse_protocol_case` reads: `run 7 ranks 3 size 65 plain: seed 0; kill rank 2
/// after 3`.
inline std::string to_string(const protocol_case& of) {
    return "run " + std::to_string(of.seed) + " ranks " + std::to_string(of.ranks) + " size " +
           std::to_string(of.size) + (of.plain ? " plain" : "") + ": " + to_string(of.faults);
}

/// Reads a case from the text that `to_string` makes. Throws `std::runtime_error` if the text is no case.
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

/// Limits on the cases that `draw_case` draws, and on their runs.
struct protocol_limits {
    int least_ranks = 2;
    int most_ranks = 16;
    std::size_t most_size = 2000;
    /// How long a rank of the protocol waits for others before it gives up. The network is much faster: its latencies
    /// and jitter are at most a thousandth of this time, except by a fault.
    duration timeout = seconds(10);
    /// The longest delay before a rank's call. Below half the timeout, so that it can be told who waits for whom.
    duration latest_entry = seconds(4);
    /// How notices travel. Where control is ideal, all failures of one call must name the same culprit.
    simulated::control_plane control = simulated::control_plane::travelling;
    /// Longest virtual time of a run; one that takes longer counts as hanging.
    duration longest = seconds(10'000);
};

/// Draws a random case: the number of ranks, the size (0, 1, up to the number of ranks, and larger ones), and faults of
/// the kind. A pure function of its arguments.
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

/// Returns the network of a case, with its faults; its seed draws links, cards, jitter and computing times.
inline simulated::network network_of(const protocol_case& of, const protocol_limits& limits = {}) {
    simulated::network net{.faults = of.faults,
                           .control = limits.control,
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

/// Returns how long a rank delays its `step`-th call: not at all, a little, or up to `latest_entry`.
inline duration entry_delay(const protocol_case& of, rank_t rank, int step, const protocol_limits& limits = {}) {
    if (of.plain) return {};
    random_sequence of_step(random_key{of.seed}.derive(5, step));
    const std::int64_t bounds[] = {0, limits.timeout.ns / 1'000, limits.latest_entry.ns};
    const std::int64_t bound = bounds[of_step.below(3)];
    random_sequence of_rank(random_key{of.seed}.derive(6, step, rank));
    return nanoseconds(static_cast<std::int64_t>(of_rank.below(static_cast<std::uint64_t>(bound) + 1)));
}

}}}  // namespace rill::RILL_ABI::testing
