// base + scale · x: adds a contribution to the residual of earlier ones.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// Computes `Count` values base + scale · x; product and sum are rounded separately.
template <std::size_t Count, Element T>
void scaled_sums(const T* base, const T* x, T scale, T (&sums)[Count]) {
    for (std::size_t j = 0; j < Count; ++j) sums[j] = static_cast<T>(scale * x[j]);
    round_here(sums);
    for (std::size_t j = 0; j < Count; ++j) sums[j] = static_cast<T>(base[j] + sums[j]);
}

/// out[j] = base[j] + scale · x[j] for `Count` entries; returns the largest magnitude of `out`.
template <std::size_t Count, Element T>
magnitude_key<T> add_scaled_block(const T* base, const T* x, T scale, T* out) {
    T sums[Count];
    scaled_sums<Count>(base, x, scale, sums);
    for (std::size_t j = 0; j < Count; ++j) out[j] = sums[j];
    return largest_of<Count>(sums);
}

}  // namespace detail

/// Computes out[i] = base[i] + scale · x[i] and returns the largest magnitude of `out`, or zero where `out` is empty.
///
/// All three vectors are equally long. `out` may be `base` or `x`; it may not overlap them otherwise. Cost: one pass
/// over the three vectors. Product and sum are rounded separately, so that every build gives the same bits.
template <Element T, Executor Exec = serial>
magnitude_key<T> add_scaled(std::span<const T> base, std::span<const T> x, T scale, std::span<T> out,
                            const Exec& executor = {}) {
    using detail::block;
    RILL_EXPECTS(base.size() == out.size() && x.size() == out.size(), "add_scaled: the vectors differ in length");
    return detail::largest_of_tasks<magnitude_key<T>>(
        executor, tasks_for(executor, out.size(), block), [&](segment part) {
            magnitude_key<T> most = 0;
            const auto add = [&]<std::size_t Count>(std::size_t i) {
                most = std::max(most, detail::add_scaled_block<Count>(&base[i], &x[i], scale, &out[i]));
            };
            std::size_t i = part.begin;
            for (; i + block <= part.end; i += block) add.template operator()<block>(i);
            for (; i < part.end; ++i) add.template operator()<1>(i);
            return most;
        });
}

/// Returns the first coordinate at which base[i] + scale · x[i] is infinite or NaN. Product and sum are rounded
/// separately. Cost: one pass over both vectors, not vectorised.
template <std::floating_point T>
std::optional<std::size_t> find_non_finite_sum(std::span<const T> base, std::span<const T> x, T scale) {
    RILL_EXPECTS(base.size() == x.size(), "find_non_finite_sum: the vectors differ in length");
    for (std::size_t i = 0; i < x.size(); ++i) {
        T sum[1];
        detail::scaled_sums<1>(&base[i], &x[i], scale, sum);
        if (magnitude(sum[0]) >= largest_magnitude<T>) return i;
    }
    return std::nullopt;
}

}}}  // namespace rill::RILL_ABI::kernel
