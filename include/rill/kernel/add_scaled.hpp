// What a contribution adds to what is left of earlier ones.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/loop.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// `Count` sums; whether one of them is not finite.
template <std::size_t Count, Element T>
bool add_scaled_block(const T* base, const T* x, T scale, T* out) {
    T sums[Count];
    for (std::size_t j = 0; j < Count; ++j) sums[j] = static_cast<T>(scale * x[j]);
    round_here(sums);
    for (std::size_t j = 0; j < Count; ++j) sums[j] = static_cast<T>(base[j] + sums[j]);
    for (std::size_t j = 0; j < Count; ++j) out[j] = sums[j];
    if constexpr (std::floating_point<T>)
        return any_at_least<Count>(sums, largest_magnitude<T>);
    else
        return false;
}

}  // namespace detail

/// out[i] = base[i] + scale · x[i], product and sum rounded; returns the first coordinate at which that is infinite or
/// NaN.
///
/// All are as long as `out`, which may be `base` or `x` and may not overlap them otherwise. Cost: one pass over the
/// three.
template <Element T, Executor Exec = serial>
std::optional<std::size_t> add_scaled(std::span<const T> base, std::span<const T> x, T scale, std::span<T> out,
                                      const Exec& executor = {}) {
    using detail::block;
    RILL_EXPECTS(base.size() == out.size() && x.size() == out.size(), "add_scaled: the vectors differ in length");
    const tasks all = tasks_for(executor, out.size(), block);
    task_counts found;  // where a block begins that holds a sum that is not finite
    run_tasks(executor, all, [&](segment part, std::size_t task) {
        found[task] = part.end;
        const auto add = [&]<std::size_t Count>(std::size_t i) {
            if (detail::add_scaled_block<Count>(&base[i], &x[i], scale, &out[i]))
                found[task] = std::min(found[task], i);
        };
        std::size_t i = part.begin;
        for (; i + block <= part.end; i += block) add.template operator()<block>(i);
        for (; i < part.end; ++i) add.template operator()<1>(i);
    });
    for (std::size_t task = 0; task < all.count(); ++task) {
        const segment rest{found[task], all[task].end};
        if (rest.empty()) continue;
        const auto bad = find_non_finite(std::span<const T>(out).subspan(rest.begin, rest.size()));
        return rest.begin + *bad;
    }
    return std::nullopt;
}

}  // namespace rill::inline RILL_ABI::kernel
