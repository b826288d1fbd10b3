#pragma once

#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// When a fold gives up sparsity: beyond δ = factor · N · sizeof(T) / (sizeof(Index) + sizeof(T)) entries the dense
/// form is the smaller one. Judged, as in SparCML (section 5.1), by the sum of the counts that go into a fold: an upper
/// bound of the union, known before the work is done. A factor of 0 always switches, a very large one never.
struct dense_switch {
    double factor = 1.0;

    template <class T, class Index>
    constexpr bool wants_dense(std::size_t count, std::size_t dimension) const {
        const double delta =
            factor * static_cast<double>(dimension) * static_cast<double>(sizeof(T)) / (sizeof(Index) + sizeof(T));
        return static_cast<double>(count) > delta;
    }
    friend constexpr bool operator==(dense_switch, dense_switch) = default;
};

}}  // namespace rill::RILL_ABI
