// Inputs and naive oracles that the tests of the kernels share.
#pragma once

#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace rill::kernel_tests {

template <class T, class I>
struct row {
    using element = T;
    using index = I;
};

#define RILL_KERNEL_ROWS                                                                           \
    rill::kernel_tests::row<float, std::uint32_t>, rill::kernel_tests::row<double, std::uint64_t>, \
        rill::kernel_tests::row<std::int32_t, std::uint64_t>, rill::kernel_tests::row<std::int64_t, std::uint32_t>

template <class T>
struct sample {
    std::string name;
    std::vector<T> values;
};

/// Vectors of `n` entries: random, tied, zero, ascending, and with the extreme values of the type.
template <class T>
std::vector<sample<T>> samples(std::size_t n) {
    std::vector<sample<T>> all{{"random", {}}, {"tied", {}}, {"zero", {}}, {"descending", {}}, {"extreme", {}}};
    for (auto& [name, values] : all) values.resize(n);
    random_sequence random(random_key{n + 1});
    const T extremes[] = {std::numeric_limits<T>::lowest(),
                          std::numeric_limits<T>::max(),
                          T{0},
                          T{1},
                          static_cast<T>(-std::numeric_limits<T>::infinity()),
                          std::numeric_limits<T>::denorm_min()};
    for (std::size_t i = 0; i < n; ++i) {
        const auto wide = static_cast<std::int32_t>(random.bits());
        all[0].values[i] = static_cast<T>(wide) / static_cast<T>(3);
        all[1].values[i] = static_cast<T>(wide % 3);
        all[2].values[i] = i % 2 == 0 ? T{0} : static_cast<T>(-T{0});
        all[3].values[i] = static_cast<T>(i) - static_cast<T>(n);
        all[4].values[i] = extremes[random.below(6)];
    }
    return all;
}

template <class T, class Index>
std::vector<Index> naive_top_k(const std::vector<T>& x, std::size_t first, std::size_t last, std::size_t k) {
    std::vector<Index> order(last - first);
    std::iota(order.begin(), order.end(), static_cast<Index>(first));
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return kernel::magnitude(x[a]) > kernel::magnitude(x[b]); });
    order.resize(std::min(k, order.size()));
    std::sort(order.begin(), order.end());
    return order;
}

}  // namespace rill::kernel_tests
