// Checks that the input and the output of a collective share no memory that they may not share.
#pragma once

#include <rill/concept/tensor.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The memory of some elements, and the coordinate of the first one.
struct placed_memory {
    memory_layout at{};
    std::ptrdiff_t coordinate = 0;
};

/// The distance in bytes, so that pointers into different arrays can be compared.
inline std::ptrdiff_t distance_of(const memory_layout& from, const memory_layout& to) {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to.first) -
                                       reinterpret_cast<std::uintptr_t>(from.first));
}

struct byte_extent {
    std::ptrdiff_t begin;
    std::ptrdiff_t end;
};
/// The bytes from the lowest to one past the highest, relative to the first element.
inline byte_extent extent_of(const memory_layout& x) {
    const std::ptrdiff_t along = x.step * (static_cast<std::ptrdiff_t>(x.length) - 1);
    const std::ptrdiff_t across = x.stride * (static_cast<std::ptrdiff_t>(x.runs) - 1);
    return {std::min<std::ptrdiff_t>(along, 0) + std::min<std::ptrdiff_t>(across, 0),
            std::max<std::ptrdiff_t>(along, 0) + std::max<std::ptrdiff_t>(across, 0) + x.element_bytes};
}

/// Whether `x` and `y`, which have this step and stride, have an element at the same address.
inline bool share_an_element(const memory_layout& x, const memory_layout& y, std::ptrdiff_t step,
                             std::ptrdiff_t stride) {
    const auto within = [](std::ptrdiff_t steps, std::size_t of_x, std::size_t of_y) {
        return -static_cast<std::ptrdiff_t>(of_y) < steps && steps < static_cast<std::ptrdiff_t>(of_x);
    };
    const std::ptrdiff_t distance = distance_of(x, y);
    for (std::ptrdiff_t run = 1 - static_cast<std::ptrdiff_t>(y.runs); run < static_cast<std::ptrdiff_t>(x.runs);
         ++run) {
        const std::ptrdiff_t rest = distance - run * stride;
        if (step == 0 ? rest == 0 : rest % step == 0 && within(rest / step, x.length, y.length)) return true;
    }
    return false;
}

/// Whether `x` and `y` may have an element in common: exact if steps and strides agree, else judged by extents. Cost:
/// O(runs).
inline bool may_share(const memory_layout& x, const memory_layout& y) {
    if (x.length * x.runs == 0 || y.length * y.runs == 0) return false;
    const byte_extent of_x = extent_of(x), of_y = extent_of(y);
    const std::ptrdiff_t distance = distance_of(x, y);
    if (distance + of_y.begin >= of_x.end || of_x.begin >= distance + of_y.end) return false;
    const bool one_step = x.step == y.step || x.length == 1 || y.length == 1;
    const bool one_stride = x.stride == y.stride || x.runs == 1 || y.runs == 1;
    if ((x.is_contiguous() && y.is_contiguous()) || !one_step || !one_stride) return true;
    return share_an_element(x, y, x.length == 1 ? y.step : x.step, x.runs == 1 ? y.stride : x.stride);
}

/// Whether each element that both have in common has the same coordinate in both.
inline bool are_in_place(const placed_memory& x, const placed_memory& y) {
    if (x.at.is_contiguous() && y.at.is_contiguous())
        return distance_of(x.at, y.at) == (y.coordinate - x.coordinate) * x.at.element_bytes;
    return x.at == y.at && x.coordinate == y.coordinate;
}

/// Calls `visit(placed_memory)` for each known piece of a tensor's memory. An expression has none.
template <Tensor X, class Visit>
void for_each_memory(const X& x, std::ptrdiff_t coordinate, Visit&& visit) {
    using traits = traits_of<X>;
    if constexpr (requires { traits::for_each_part(x, [](const auto&) {}); }) {
        traits::for_each_part(x, [&](const auto& part) {
            for_each_memory(part, coordinate, visit);
            coordinate += static_cast<std::ptrdiff_t>(size_of(part));
        });
    } else if constexpr (requires { traits::layout_in_memory(x); }) {
        visit(placed_memory{traits::layout_in_memory(x), coordinate});
    } else if constexpr (ViewableAs<const X, std::span<const tensor_element<X>>>) {
        if (has_view<std::span<const tensor_element<X>>>(x))
            visit(placed_memory{memory_layout::of(std::span<const tensor_element<X>>(traits::view(x))), coordinate});
    }
}

/// Which memory a collective allows its input and its output to have in common.
enum class sharing : unsigned char { none, same_coordinates };

template <Tensor X>
std::size_t pieces_in_memory(const X& x) {
    std::size_t pieces = 0;
    for_each_memory(x, 0, [&](const placed_memory&) { ++pieces; });
    return pieces;
}

/// So many pairs of pieces are compared at every contract level; 64 tensors on each side, some 20 µs.
inline constexpr std::size_t pairs_compared = std::size_t{64} * 64;

/// Whether `in` and `out` share no more memory than `may` allows. `first`: the output coordinate of the input's first
/// element.
///
/// Cost: compares every piece of one with every piece of the other. Where there are more pairs than `pairs_compared`,
/// it does so at `RILL_CONTRACTS_DEBUG` only, and returns true otherwise.
template <Tensor In, Tensor Out>
bool have_apart(const In& in, const Out& out, sharing may, std::size_t first = 0) {
    if (RILL_CONTRACTS < RILL_CONTRACTS_DEBUG && pieces_in_memory(in) * pieces_in_memory(out) > pairs_compared)
        return true;
    bool good = true;
    for_each_memory(out, 0, [&](const placed_memory& to) {
        for_each_memory(in, static_cast<std::ptrdiff_t>(first), [&](const placed_memory& from) {
            const bool is_fine =
                !may_share(from.at, to.at) || (may == sharing::same_coordinates && are_in_place(from, to));
            good = good && is_fine;
        });
    });
    return good;
}

}}}  // namespace rill::RILL_ABI::detail
