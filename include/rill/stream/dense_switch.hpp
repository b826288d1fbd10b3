#pragma once

#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// When a fold changes from the sparse to the dense form: beyond δ = factor · N · sizeof(T) / (sizeof(Index) +
/// sizeof(T)) entries the dense form is smaller. The test uses the sum of the operands' counts, an upper bound of the
/// result's count that is known before the fold. A factor of 0 switches for every result that is not empty, a very
/// large one never. Source: SparCML, section 5.1.
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
