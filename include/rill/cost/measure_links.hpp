#pragma once

#include <rill/collective/all_gather.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/detail/fit_link.hpp>
#include <rill/cost/detail/probe_messages.hpp>
#include <rill/transport/links.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// How carefully all links are measured.
struct links_probe {
    std::size_t largest_bytes = std::size_t{1} << 20;  ///< payload; sizes grow from 0 by factors of 4
    int repetitions = 3;                               ///< per size and direction; their median is used

    friend bool operator==(const links_probe&, const links_probe&) = default;
};

namespace detail {

/// The opponent in a round of a tournament in which each of `players` meets each other once, or no rank: of an odd
/// number one rests in each round. There are `players - 1` rounds, or `players` if that is odd. The circle method.
constexpr rank_t opponent(int players, int round, rank_t player) {
    const int seats = players + players % 2, circle = seats - 1;
    rank_t other = player == circle ? round : (2 * round + circle - player % circle) % circle;
    if (other == player) other = circle;
    return other < players ? other : no_rank;
}
constexpr int tournament_rounds(int players) { return players + players % 2 - 1; }

/// Measures both ways of the link to one other rank: a message there, an empty one back.
template <class Net>
class both_ways {
  public:
    explicit both_ways(const links_probe& probe) : probe_(probe), messages_(probe.largest_bytes) {}

    std::size_t largest() const { return messages_.largest(); }

    /// The link from this rank to `peer`. The lower rank measures first. This object must live until the operation
    /// ends.
    network_link run(exchange<Net>& call, rank_t peer) {
        const bool is_first = call.net().rank() < peer;
        if (!is_first) answer(call, peer);
        const network_link found = measure(call, peer);
        if (is_first) answer(call, peer);
        return found;
    }

  private:
    /// What a longer message takes more is the way there alone. `fit_link` expects it twice, of there and back.
    network_link measure(exchange<Net>& call, rank_t peer) {
        std::vector<round_trip> trips;
        messages_.for_each_size([&](std::size_t count) {
            const duration time = messages_.median_time(call, probe_.repetitions, [&] {
                messages_.send(call, peer, messages_.zeros(count));
                messages_.receive(call, peer, 0);
            });
            trips.push_back({messages_.bytes(count), trips.empty() ? time : time * 2 - trips.front().time});
        });
        return fit_link(trips);
    }
    void answer(exchange<Net>& call, rank_t peer) {
        messages_.for_each_size([&](std::size_t count) {
            for (int i = -1; i < probe_.repetitions; ++i) {
                messages_.receive(call, peer, count);
                messages_.send(call, peer, messages_.zeros(0));
            }
        });
    }

    links_probe probe_;
    probe_messages<Net> messages_;
};

}  // namespace detail

/// Measures the links between all ranks, row by row: entry `i * P + j` is the link from rank i to rank j, and those on
/// the diagonal have no latency and no limit. `matrix_links{P, links}` is a network of them.
///
/// Collective: every rank calls it with the same `probe` and gets the same links. All pairs are measured in P - 1
/// rounds (P if that is odd) of pairs that do not share a rank, at once. Each round is an operation of the group, and
/// must end within its timeout. Both ways are measured on their own; the latency is half of that there and back. On a
/// simulated network whose links have two equal ways the result is exact. Cost: P rounds of some 2.7 (repetitions + 1)
/// largest_bytes / bandwidth of the slowest link in each. Errors: those of `barrier`.
template <class Group>
std::vector<network_link> measure_links(Group& group, const links_probe& probe = {}) {
    RILL_EXPECTS(probe.repetitions >= 1 && probe.largest_bytes >= 1024,
                 "cost::measure_links: needs a repetition, and messages of 1024 bytes");
    const int size = group.size();
    std::vector<std::int64_t> own(2 * static_cast<std::size_t>(size)), all(own.size() * static_cast<std::size_t>(size));
    constexpr option_names names{{"round", "number of repetitions"}};
    for (int round = 0; size > 1 && round < detail::tournament_rounds(size); ++round) {
        detail::both_ways<typename Group::transport_type> probing(probe);
        group.run(
            {.kind = operation::broadcast,
             .element = element_type::int32,
             .dimension = probing.largest(),
             .options = names.with({static_cast<std::uint32_t>(round), static_cast<std::uint32_t>(probe.repetitions)})},
            [&](auto& call) {
                const rank_t peer = detail::opponent(size, round, group.rank());
                if (peer == no_rank) return receipt{};
                const network_link found = probing.run(call, peer);
                own[2 * static_cast<std::size_t>(peer)] = found.latency.ns;
                own[2 * static_cast<std::size_t>(peer) + 1] = static_cast<std::int64_t>(found.bandwidth);
                return receipt{};
            },
            names);
    }
    all_gather(group, own, all);
    std::vector<network_link> links;
    for (std::size_t i = 0; i < all.size(); i += 2)
        links.push_back({duration(all[i]), static_cast<std::uint64_t>(all[i + 1])});
    return links;
}

/// The speeds of links, as `topology::bandwidth_matching` takes them. A link without a limit counts as one of an
/// exabyte per second.
inline std::vector<double> bytes_per_second(std::span<const network_link> links) {
    std::vector<double> speeds;
    for (const network_link& each : links)
        speeds.push_back(each.bandwidth == 0 ? 1e18 : static_cast<double>(each.bandwidth));
    return speeds;
}

}}}  // namespace rill::RILL_ABI::cost
