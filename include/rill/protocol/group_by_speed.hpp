#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/topology/ring.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// When ranks are too unlike to work in one group, and how their speed is measured.
struct speed_options {
    /// A group is split as long as its slowest rank takes longer than its fastest by more than this part of its mean.
    double spread = 1;
    /// How many steps are measured.
    int steps = 20;
    /// How long a rank that has made its steps waits for the others.
    duration timeout = seconds(60);

    /// Throws `contract_violation` if an option is out of range; `rank` is the caller's, for the message.
    void require_options(rank_t rank) const {
        detail::require_option(spread >= 0, "group_by_speed: spread", spread, "at least 0", rank);
        detail::require_option(steps >= 1, "group_by_speed: steps", steps, "at least 1", rank);
        detail::require_option(timeout.ns > 0, "group_by_speed: timeout", timeout.seconds(), "above 0 s", rank);
    }
};

namespace detail {

/// Adds `group`, or the groups that it is split into, to `groups`.
inline void add_alike(std::span<const double> times, double spread, std::vector<rank_t> group,
                      std::vector<std::vector<rank_t>>& groups) {
    const auto time_of = [&](rank_t rank) { return times[static_cast<std::size_t>(rank)]; };
    std::stable_sort(group.begin(), group.end(), [&](rank_t a, rank_t b) { return time_of(a) < time_of(b); });
    const double sum =
        std::accumulate(group.begin(), group.end(), 0.0, [&](double of, rank_t rank) { return of + time_of(rank); });
    // Of times that are nearly alike the mean may be rounded to less than the shortest: each part must have a rank.
    const double mean = std::max(sum / static_cast<double>(group.size()), time_of(group.front()));
    const auto slow = std::find_if(group.begin(), group.end(), [&](rank_t rank) { return time_of(rank) > mean; });
    if (slow == group.end() || time_of(group.back()) - time_of(group.front()) <= spread * mean) {
        std::sort(group.begin(), group.end());
        groups.push_back(std::move(group));
        return;
    }
    add_alike(times, spread, std::vector<rank_t>(group.begin(), slow), groups);
    add_alike(times, spread, std::vector<rank_t>(slow, group.end()), groups);
}

}  // namespace detail

/// Ranks in groups of like speed: `times[r]` is what a step of rank r takes. As long as in a group slowest - fastest >
/// spread * mean, the ranks above the mean leave it as a group of their own. The fastest group is the first; each is
/// ascending. Source: RNA (Yang et al. 2020), section 4.
inline std::vector<std::vector<rank_t>> split_by_speed(std::span<const double> times, double spread) {
    std::vector<rank_t> all(times.size());
    std::iota(all.begin(), all.end(), rank_t{0});
    std::vector<std::vector<rank_t>> groups;
    if (!all.empty()) detail::add_alike(times, spread, std::move(all), groups);
    return groups;
}

/// Measures how long this rank takes for a step, and returns the view of the ranks that are as fast as it is: those of
/// one group of `split_by_speed`. `step()` computes one gradient, say; its mean time counts.
///
///     rill::subgroup alike{net, rill::group_by_speed(net, [&] { gradient_at(model, gradient); })};
///
/// Collective, with equal options on all ranks. Cost: `steps` steps; then a group is made, which compares the options
/// and gathers P numbers. All ranks get the views of one split. Deterministic where time is, as in the simulator.
/// Errors: `contract_violation` for options out of range, `mismatch` where they differ, those of `all_gather`, and what
/// `step` throws: on its rank, for which the others then wait until their timeout.
template <Transport Net, class Step>
view group_by_speed(Net& net, Step&& step, const speed_options& options = {}) {
    options.require_options(net.rank());
    const time_point begin = std::as_const(net).now();
    for (int i = 0; i < options.steps; ++i) step();
    const duration taken = std::as_const(net).now() - begin;
    group all{net, topology::ring{}, {.timeout = options.timeout, .name = "group_by_speed"}};
    constexpr option_names names{{"spread", "steps"}};
    agree(all, names,
          {option_hash(std::bit_cast<std::uint64_t>(options.spread)),
           option_hash(static_cast<std::uint64_t>(options.steps))});
    std::vector<double> times(static_cast<std::size_t>(net.size()));
    const std::array own{taken.seconds() / options.steps};
    all_gather(all, own, times);
    for (std::vector<rank_t>& members : split_by_speed(times, options.spread))
        if (std::binary_search(members.begin(), members.end(), net.rank()))
            return {.epoch = epoch_of(net), .members = std::move(members)};
    return view::all(net);
}

}}  // namespace rill::RILL_ABI
