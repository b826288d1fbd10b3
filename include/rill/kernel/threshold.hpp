#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/select.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// Writes the coordinates of up to 64 entries that reach `bound`; returns their number.
template <Element T, IndexType Index>
std::size_t write_at_least(std::span<const T> x, std::size_t first, magnitude_key<T> bound, Index* out) {
    std::size_t count = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
        out[count] = static_cast<Index>(first + j);
        count += magnitude(x[j]) >= bound ? 1U : 0U;
    }
    return count;
}

}  // namespace detail

/// Fills `indices` with the coordinates whose magnitude is at least `limit`, in ascending order, and returns their
/// number.
///
/// `indices` grows as needed and keeps its capacity. Cost: one pass. Throws `invalid_value` naming the lowest
/// coordinate that is NaN; `indices` is then unspecified.
template <Element T, IndexType Index>
std::size_t threshold(std::span<const T> x, T limit, aligned_vector<Index>& indices) {
    using detail::block;
    RILL_EXPECTS(limit >= T{0}, "threshold: the limit is a magnitude");
    RILL_EXPECTS(detail::fits<Index>(x.size()), "threshold: the index type cannot number every coordinate");
    const auto bound = magnitude(limit);
    std::size_t count = 0;
    bool nan = false;
    for (std::size_t i = 0; i < x.size(); i += block) {
        const auto part = x.subspan(i, std::min(block, x.size() - i));
        if (part.size() == block && !detail::any_at_least<block>(part.data(), bound)) continue;
        if (indices.size() < count + block) indices.resize(std::max(2 * indices.size(), count + block));
        nan |= find_nan(part).has_value();
        count += detail::write_at_least(part, i, bound, indices.data() + count);
    }
    indices.resize(count);
    if (nan) refuse_nan(x);
    return count;
}

}}}  // namespace rill::RILL_ABI::kernel
