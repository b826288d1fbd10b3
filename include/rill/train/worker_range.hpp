#pragma once

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/config.hpp>

#include <array>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// What a number is on the ranks of a group: the accuracy of each rank's own model, say.
struct worker_range {
    double least = 0, mean = 0, greatest = 0;

    friend constexpr bool operator==(const worker_range&, const worker_range&) = default;
};

/// Collective. All ranks get the same bits. Cost: an all-reduce of two numbers and one of a number. A NaN of any rank
/// makes all three NaN. Errors: as in `all_reduce`.
template <class Group>
worker_range range_of(Group& workers, double value) {
    std::array<double, 2> ends{-value, value};
    all_reduce(workers, std::span(ends), std::span(ends), aggregate::max{});
    const std::span<double> sum(&value, 1);
    all_reduce(workers, sum, sum);
    return {.least = -ends[0], .mean = value / workers.size(), .greatest = ends[1]};
}

}}}  // namespace rill::RILL_ABI::train
