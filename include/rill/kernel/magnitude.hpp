// Magnitudes as unsigned integers, whose order is defined for all element types, INT_MIN and NaN included.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/error.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// An unsigned integer of the size of `T`, in which magnitudes are compared.
template <Element T>
using magnitude_key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Returns |x| as an unsigned integer that orders as |x| does; a NaN is above infinity.
template <Element T>
constexpr magnitude_key<T> magnitude(T x) {
    using key = magnitude_key<T>;
    if constexpr (std::floating_point<T>)
        return std::bit_cast<key>(x) & (static_cast<key>(-1) >> 1);
    else
        return x < 0 ? key{0} - static_cast<key>(x) : static_cast<key>(x);
}

/// The largest magnitude that is no NaN.
template <Element T>
inline constexpr magnitude_key<T> largest_magnitude =
    std::floating_point<T> ? magnitude(std::numeric_limits<T>::infinity()) : magnitude(std::numeric_limits<T>::min());

namespace detail {

template <std::size_t Count, Element T>
magnitude_key<T> largest_of(const T* x) {
    magnitude_key<T> most = 0;
    for (std::size_t j = 0; j < Count; ++j) most = std::max(most, magnitude(x[j]));
    return most;
}

template <Element T>
magnitude_key<T> largest_of(std::span<const T> x) {
    magnitude_key<T> most = 0;
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) most = std::max(most, largest_of<block>(&x[i]));
    for (; i < x.size(); ++i) most = std::max(most, magnitude(x[i]));
    return most;
}

/// Whether any of `Count` magnitudes reaches `bound`.
template <std::size_t Count, Element T>
bool any_at_least(const T* x, magnitude_key<T> bound) {
    return largest_of<Count>(x) >= bound;
}

/// Returns the largest result of `body(segment)` over all tasks, or zero if there are none.
template <class Key, Executor Exec, class Body>
Key largest_of_tasks(const Exec& executor, const tasks& all, Body&& body) {
    Key found[tasks::most]{};
    run_tasks(executor, all, [&](segment part, std::size_t task) { found[task] = body(part); });
    Key largest = 0;
    for (const Key each : found) largest = std::max(largest, each);
    return largest;
}

/// Returns the first coordinate whose magnitude reaches `bound`, or `x.size()`.
template <Element T>
std::size_t find_at_least(std::span<const T> x, magnitude_key<T> bound) {
    std::size_t i = 0;
    while (i + block <= x.size() && !any_at_least<block>(x.data() + i, bound)) i += block;
    while (i < x.size() && magnitude(x[i]) < bound) ++i;
    return i;
}

template <Element T, Executor Exec>
std::optional<std::size_t> find_at_least(std::span<const T> x, magnitude_key<T> bound, const Exec& executor) {
    const tasks all = tasks_for(executor, x.size(), block);
    task_counts found;
    run_tasks(executor, all, [&](segment part, std::size_t task) {
        found[task] = find_at_least(x.subspan(part.begin, part.size()), bound);
    });
    for (std::size_t task = 0; task < all.count(); ++task)
        if (found[task] < all[task].size()) return all[task].begin + found[task];
    return std::nullopt;
}

}  // namespace detail

/// Returns the first coordinate that is infinite or NaN. Cost: at most one pass.
template <Element T, Executor Exec = serial>
std::optional<std::size_t> find_non_finite(std::span<const T> x, const Exec& executor = {}) {
    if constexpr (std::floating_point<T>)
        return detail::find_at_least(x, largest_magnitude<T>, executor);
    else
        return std::nullopt;
}

/// Returns the largest magnitude, or zero where `x` is empty. Cost: one pass.
template <Element T, Executor Exec = serial>
magnitude_key<T> largest(std::span<const T> x, const Exec& executor = {}) {
    return detail::largest_of_tasks<magnitude_key<T>>(
        executor, tasks_for(executor, x.size(), detail::block),
        [&](segment part) { return detail::largest_of(x.subspan(part.begin, part.size())); });
}

/// Returns the first coordinate that is NaN. Cost: at most one pass.
template <Element T>
std::optional<std::size_t> find_nan(std::span<const T> x) {
    if constexpr (std::floating_point<T>)
        return detail::find_at_least(x, largest_magnitude<T> + 1, serial{});
    else
        return std::nullopt;
}

/// Throws `invalid_value` naming the lowest NaN, if there is one. `first` is the coordinate of `x[0]`.
template <Element T>
void refuse_nan(std::span<const T> x, std::size_t first = 0) {
    if (const auto i = find_nan(x)) throw invalid_value(text_of({"coordinate ", first + *i, " is NaN"}));
}

}}}  // namespace rill::RILL_ABI::kernel
