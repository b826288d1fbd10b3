// Merging any number of sparse vectors.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/kernel/detail/merge_tile.hpp>
#include <rill/kernel/detail/merge_tree.hpp>
#include <rill/kernel/detail/merge_tree_avx512.hpp>
#include <rill/kernel/detail/scratch.hpp>
#include <rill/kernel/detail/task_scratch.hpp>
#include <rill/kernel/merge.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Working memory of `merge_k`. It grows to the largest need so far, which depends on the lengths of the inputs and on
/// the lengths of their dense stretches.
struct merge_scratch {
    buffer indices;
    buffer values;
    buffer cursors;
    buffer tile;
    buffer runs;
    buffer views;
    detail::task_scratch<merge_scratch> of_tasks;
};

namespace detail {

/// Merges tile by tile: scatters all inputs' entries in a range of coordinates into a dense tile, then reads it out.
template <Element T, IndexType Index, class Fold>
std::size_t merge_tiles(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                        merge_scratch& scratch) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
    if (scratch.tile.size() < sizeof(tile<T>))
        scratch.tile.assign(sizeof(tile<T>), std::byte{});  // zeroed, because sums may read entries that nothing wrote
    tile<T>& dense = *reinterpret_cast<tile<T>*>(scratch.tile.data());
    std::size_t* cursors = room<std::size_t>(scratch.cursors, inputs.size());
    rill::detail::fill_elements(cursors, inputs.size(), std::size_t{0});
    Index last = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k)
        if (inputs[k].count() != 0) last = std::max(last, inputs[k].indices.back());
    bool any = false, fresh = true;
    for (Index base = lowest_index(inputs, cursors, any); any; base = lowest_index(inputs, cursors, any)) {
        const std::size_t extent = last - base < merge_tile ? static_cast<std::size_t>(last - base) + 1 : merge_tile;
        if (fresh) dense.clear(extent);
        fresh = false;
        for (std::size_t k = 0; k < inputs.size(); ++k) cursors[k] = dense.put(inputs[k], cursors[k], base, fold);
        dense.drain(base, extent, out);
    }
    return out.count;
}

/// Merges the first two inputs, the result with the third, and so on; results alternate between `out` and scratch, so
/// that the last one lands in `out`.
template <Element T, IndexType Index, class Fold>
std::size_t merge_in_turn(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                          merge_scratch& scratch) {
    std::size_t most = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) most += inputs[k].count();
    Index* other_indices = room<Index>(scratch.indices, most);
    T* other_values = room<T>(scratch.values, most);
    sparse_view<T, Index> acc = inputs.empty() ? sparse_view<T, Index>{} : inputs[0];
    if (inputs.size() <= 1) return merge_to(acc, {}, indices, values, fold);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
        const bool to_out = (inputs.size() - k) % 2 == 1;
        Index* i = to_out ? indices : other_indices;
        T* v = to_out ? values : other_values;
        const std::size_t count = merge_to(acc, inputs[k], i, v, fold);
        acc = {.indices = {i, count}, .values = {v, count}};
    }
    return acc.count();
}

/// Tiles are faster than a tree with fewer coordinates per entry than this (measured with 3, 4, 8 and 16 inputs of 16M
/// coordinates): tiles scan the marks of the whole range, a tree moves every entry once per level.
template <Element T, IndexType Index, class Fold>
constexpr std::size_t coordinates_per_entry(std::size_t inputs) {
    if (inputs < (adds_by_avx512<T, Index, Fold> ? 4 : 3)) return 0;
    const auto below_the_top = static_cast<std::size_t>(std::bit_width(inputs - 1)) - 1;  // levels of the tree
    return adds_by_avx512<T, Index, Fold> ? below_the_top * 7 / 2 : below_the_top * 10;
}

template <Element T, IndexType Index, class Fold>
bool tiles_pay(std::span<const sparse_view<T, Index>> inputs) {
    const std::size_t sparse = coordinates_per_entry<T, Index, Fold>(inputs.size());
    std::size_t entries = 0;
    Index first = static_cast<Index>(-1), last = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        const auto& input = inputs[k];
        if (input.count() == 0) continue;
        entries += input.count();
        first = std::min(first, input.indices.front());
        last = std::max(last, input.indices.back());
    }
    return sparse > 0 && entries > 0 && (last - first) / sparse < entries;
}

template <Element T, IndexType Index, class Fold>
struct runs_for {
    using type = plain_runs<T, Index>;
};
#if defined(RILL_DETAIL_AVX512)
template <Element T, IndexType Index, class Fold>
    requires adds_by_avx512<T, Index, Fold>
struct runs_for<T, Index, Fold> {
    using type = key_runs;
};
#endif

/// How many stretches are merged in turn before the tree is tried again. The number doubles each time the tree fails at
/// once. With half as many, the trials cost dense vectors 3 %; with twice as many, most of the gain after a small
/// cluster is lost.
inline constexpr std::size_t first_in_turn = 16;

/// Merges pairs of inputs, then pairs of results, where most coordinates occur in one input only. Where coordinates
/// occur in many inputs, merging in turn takes fewer steps, because the results stay short.
template <Element T, IndexType Index, class Fold, class Runs = typename runs_for<T, Index, Fold>::type>
std::size_t merge_by_tree(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                          merge_scratch& scratch) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
    const std::span<sparse_view<T, Index>> views(room<sparse_view<T, Index>>(scratch.views, inputs.size()),
                                                 inputs.size());
    merge_tree<Runs, T, Index> tree(inputs, views, scratch.cursors, scratch.runs);
    std::size_t in_turn = first_in_turn;
    for (std::size_t before = 0;; before = out.count) {
        const std::size_t merged = tree.merge_next(out, fold);
        if (merged == 0) return out.count;
        if (out.count - before >= merged / 2) {
            in_turn = first_in_turn;
            continue;
        }
        tree.skip(in_turn);
        in_turn *= 2;
        out.count += merge_in_turn<T, Index>(views, indices + out.count, values + out.count, fold, scratch);
    }
}

/// Whether one input is so much longer than all others together that it is copied in stretches.
template <Element T, IndexType Index>
bool one_outweighs(std::span<const sparse_view<T, Index>> inputs) {
    std::size_t longest = 0, entries = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        longest = std::max(longest, inputs[k].count());
        entries += inputs[k].count();
    }
    return entries - longest < longest / much_longer;
}

template <Element T, IndexType Index, class Fold>
std::size_t merge_any(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                      merge_scratch& scratch) {
    if (tiles_pay<T, Index, Fold>(inputs)) return merge_tiles(inputs, indices, values, fold, scratch);
    if (inputs.size() <= 3 || one_outweighs(inputs)) return merge_in_turn(inputs, indices, values, fold, scratch);
    return merge_by_tree(inputs, indices, values, fold, scratch);
}

/// Cuts the inputs at common coordinates: those of the longest one at the borders of its tasks. View k of task t is
/// result[t * inputs.size() + k].
template <Element T, IndexType Index>
std::span<const sparse_view<T, Index>> cut_inputs(std::span<const sparse_view<T, Index>> inputs, const tasks& all,
                                                  std::span<const Index> longest, merge_scratch& scratch) {
    auto* views = room<sparse_view<T, Index>>(scratch.views, all.count() * inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        const auto& in = inputs[k];
        std::size_t first = 0;
        for (std::size_t t = 0; t < all.count(); ++t) {
            const std::size_t border = std::min(split(longest.size(), all.count(), t).end, longest.size() - 1);
            const auto last = t + 1 == all.count() ? in.count() : gallop(in.indices, first, longest[border]);
            views[t * inputs.size() + k] = {in.indices.subspan(first, last - first),
                                            in.values.subspan(first, last - first)};
            first = last;
        }
    }
    return {views, all.count() * inputs.size()};
}

/// Closes the gaps between the tasks' results. The result of task t begins at `from[t]`.
template <class Value>
void close_gaps(Value* values, const tasks& all, const task_counts& from, const task_counts& counts) {
    std::size_t to = counts[0];
    for (std::size_t t = 1; t < all.count(); ++t) {
        if (to != from[t]) rill::detail::copy_elements(values + from[t], counts[t], values + to);
        to += counts[t];
    }
}

/// Each task merges a stretch of coordinates and writes it where it belongs if no lower coordinate occurs in two
/// inputs. Coordinates that occur in two leave gaps, which are closed afterwards.
template <Element T, IndexType Index, class Fold, Executor Exec>
std::size_t merge_by_tasks(std::span<const sparse_view<T, Index>> inputs, std::size_t entries, Index* indices,
                           T* values, Fold& fold, merge_scratch& scratch, const Exec& executor) {
    const tasks all(entries);
    const std::size_t ways = inputs.size();
    const auto longest = std::max_element(inputs.begin(), inputs.end(),
                                          [](const auto& a, const auto& b) { return a.count() < b.count(); });
    const auto views = cut_inputs(inputs, all, longest->indices, scratch);
    task_counts from{}, counts{};
    for (std::size_t t = 0; t + 1 < all.count(); ++t) {
        from[t + 1] = from[t];
        for (const auto& view : views.subspan(t * ways, ways)) from[t + 1] += view.count();
    }
    scratch.of_tasks.provide(all.count());
    executor.run(all.count(), [&](std::size_t t) {
        counts[t] =
            merge_any(views.subspan(t * ways, ways), indices + from[t], values + from[t], fold, scratch.of_tasks[t]);
    });
    executor.run(2, [&](std::size_t half) {
        if (half == 0)
            close_gaps(indices, all, from, counts);
        else
            close_gaps(values, all, from, counts);
    });
    return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(all.count()), std::size_t{0});
}

}  // namespace detail

/// Writes the union of sparse vectors and returns its size. An entry is the left fold, in the order of the inputs, of
/// the values present at its coordinate.
///
/// `indices` and `values` hold at least the sum of the inputs' counts and overlap no input. A value that is alone at
/// its coordinate is copied; `fold` sees present values only. The bits of the result do not depend on the executor or
/// on how the algorithm cuts the work.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
std::size_t merge_k(std::span<const sparse_view<T, Index>> inputs, std::span<Index> indices, std::span<T> values,
                    Fold&& fold, merge_scratch& scratch, [[maybe_unused]] const Exec& executor = {}) {
    std::size_t most = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        RILL_EXPECTS(inputs[k].indices.size() == inputs[k].values.size(), "merge_k: each index has one value");
        most += inputs[k].count();
    }
    RILL_EXPECTS(indices.size() >= most && values.size() >= most, "merge_k: too little room for the result");
    if constexpr (may_divide<Exec>)
        if (inputs.size() > 1 && tasks_for(executor, most).count() > 1)
            return detail::merge_by_tasks(inputs, most, indices.data(), values.data(), fold, scratch, executor);
    return detail::merge_any(inputs, indices.data(), values.data(), fold, scratch);
}

}}}  // namespace rill::RILL_ABI::kernel
