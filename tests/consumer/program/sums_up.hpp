#pragma once

#include <rill/rill.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

/// All ranks of `net` sum vectors, densely and then sparsely. Returns whether this rank got the right sums.
template <class Net>
bool sums_up(Net& net) {
    constexpr std::size_t n = 1000;
    const auto ranks = static_cast<float>(net.size());
    rill::group workers{net, rill::topology::split_allgather{}};
    std::vector<float> input(n);
    for (std::size_t i = 0; i < n; ++i) input[i] = static_cast<float>(i) + static_cast<float>(net.rank());
    std::vector<float> sum(n);
    const rill::receipt dense = rill::all_reduce(workers, input, sum);
    bool right = dense.contributors == net.size();
    for (std::size_t i = 0; i < n; ++i)
        right = right && sum[i] == ranks * static_cast<float>(i) + ranks * (ranks - 1) / 2;

    // The largest tenth of the entries, which are the same coordinates on all ranks.
    auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}}.bind(n);
    std::vector<float> mean(n);
    rill::all_reduce(workers, input, mean, codec, rill::aggregate::mean{});
    for (std::size_t i = 0; i < n; ++i)
        right = right && std::abs(mean[i] - (i < n - n / 10 ? 0 : sum[i] / ranks)) < 0.001F;
    return right;
}
