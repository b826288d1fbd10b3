#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/detail/disjoint_sets.hpp>
#include <rill/topology/mixing_rate.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// A round of gossip: what it sends, and what it takes besides.
struct matching_round {
    double bytes = 0;            ///< that a rank sends to its partner
    double density = 1;          ///< the share of its model's entries that these are
    double seconds_besides = 0;  ///< of computing and latency
};

/// What rounds over links of `least` or more are like.
struct matching_forecast {
    double least = 0;    ///< bytes per second
    double slowest = 0;  ///< bytes per second of a round's slowest pair, on average
    double seconds = 0;  ///< of a round, which ends with its slowest pair, on average
    double factor = 1;   ///< by which a round shrinks the squared distance of the models from their mean
    /// By how much the logarithm of that distance falls in a second; 0 if models never come together.
    double consensus_per_second() const { return factor < 1 ? -std::log(factor) / seconds : 0; }
};

/// Says for some values of `least` how fast models come together by `mixing`, in ascending order of `least`: 0, and the
/// speeds of up to `choices - 1` links, evenly spaced among all of them from slow to fast. What `mixing.least` is does
/// not matter.
///
///     const auto all = cost::forecast_matchings(mixing, ranks, {.bytes = 4e4, .density = 0.01});
///     mixing.least = cost::fastest_consensus(all).least;
///
/// A higher `least` makes rounds shorter and lets fewer pairs meet, so that each round brings less. Seconds are means
/// over `rounds` rounds, as a simulated network with these links has them, with the queues left out; the factor is
/// 1 - (1 - λ) density, where λ is `topology::mixing_rate`, and 1 if the links do not join all ranks. Deterministic.
/// Cost: that of `rounds` rounds of the mixing for each choice. Errors: `contract_violation` from `mixing.bind`, or if
/// bytes, density or seconds are out of range.
inline std::vector<matching_forecast> forecast_matchings(topology::bandwidth_matching mixing, int ranks,
                                                         const matching_round& round, int choices = 16,
                                                         std::uint64_t rounds = 200, random_key key = {}) {
    RILL_EXPECTS(ranks >= 2 && choices >= 1 && rounds >= 1,
                 "cost::forecast_matchings: needs two ranks, a choice and a round");
    rill::detail::require_option(round.bytes > 0 && std::isfinite(round.bytes), "cost::matching_round: bytes",
                                 round.bytes, "above 0 and finite");
    rill::detail::require_option(round.density > 0 && round.density <= 1, "cost::matching_round: density",
                                 round.density, "in (0, 1]");
    rill::detail::require_option(round.seconds_besides >= 0 && std::isfinite(round.seconds_besides),
                                 "cost::matching_round: seconds_besides", round.seconds_besides,
                                 "0 or more and finite");
    mixing.least = 0;
    mixing.bind(ranks, key);  // checks the links
    const auto size = static_cast<std::size_t>(ranks);
    const auto speed = [&](std::size_t a, std::size_t b) {
        return std::min(mixing.links[a * size + b], mixing.links[b * size + a]);
    };
    std::vector<double> speeds, candidates{0};
    topology::detail::disjoint_sets joined(ranks);
    int parts = ranks;
    for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b) {
            speeds.push_back(speed(a, b));
            if (speed(a, b) > 0 && joined.join(static_cast<rank_t>(a), static_cast<rank_t>(b))) --parts;
        }
    std::sort(speeds.begin(), speeds.end());
    const auto others = static_cast<std::size_t>(choices) - 1;
    for (std::size_t i = 1; i <= others; ++i) candidates.push_back(speeds[i * (speeds.size() - 1) / others]);
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());

    std::vector<matching_forecast> all;
    for (const double least : candidates) {
        mixing.least = least;
        matching_forecast found{.least = least};
        const auto drawn = topology::detail::rows_of_rounds(mixing, ranks, rounds, key);
        for (const auto& rows : drawn) {
            double slowest = speeds.back();
            for (std::size_t rank = 0; rank < size; ++rank)
                for (const rank_t peer : rows[rank].receivers)
                    slowest = std::min(slowest, speed(rank, static_cast<std::size_t>(peer)));
            found.slowest += slowest / static_cast<double>(rounds);
            found.seconds += (round.bytes / slowest + round.seconds_besides) / static_cast<double>(rounds);
        }
        if (parts == 1) found.factor = 1 - (1 - topology::detail::rate_of_rounds(drawn)) * round.density;
        all.push_back(found);
    }
    return all;
}

/// The one by which models come together fastest.
inline const matching_forecast& fastest_consensus(const std::vector<matching_forecast>& all) {
    RILL_EXPECTS(!all.empty(), "cost::fastest_consensus: there is at least one forecast");
    return *std::max_element(all.begin(), all.end(), [](const matching_forecast& a, const matching_forecast& b) {
        return a.consensus_per_second() < b.consensus_per_second();
    });
}

}}}  // namespace rill::RILL_ABI::cost
