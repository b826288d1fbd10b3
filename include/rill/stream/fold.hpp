#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/span_of.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/merge_k.hpp>
#include <rill/kernel/scatter.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/stream/dense_switch.hpp>
#include <rill/stream/stream.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Scratch memory of `fold_streams`, reused between calls.
template <Element T, IndexType Index>
struct fold_scratch {
    aligned_vector<sparse_view<T, Index>> sparse;
    aligned_vector<std::span<const T>> dense;
    kernel::merge_scratch merge;
};

namespace detail {
template <Element T, IndexType Index, class Fold>
void fold_one(std::span<T> target, const stream_view<T, Index>& operand, const Fold& fold) {
    if (operand.is_dense())
        kernel::fold_dense(target, operand.values(), fold);
    else
        kernel::scatter_fold(operand.pairs(), operand.range().begin, target, fold);
}

template <Element T, IndexType Index, class Fold, Executor Exec>
bool fold_all_dense(std::span<const stream_view<T, Index>> operands, std::span<T> target, const Fold& fold,
                    fold_scratch<T, Index>& scratch, const Exec& executor) {
    scratch.dense.clear();
    for (std::size_t k = 0; k < operands.size(); ++k) {
        if (!operands[k].is_dense()) return false;
        scratch.dense.push_back(operands[k].values());
    }
    kernel::fold_dense_k(std::span<const std::span<const T>>(span_of(scratch.dense)), target, fold, executor);
    return true;
}

/// Whether the fold of these streams is dense: if one of them is, or if the sparse form would be the larger one.
template <Element T, IndexType Index>
bool folds_to_dense(std::span<const stream_view<T, Index>> operands, dense_switch when, const coding& codes) {
    const segment range = operands[0].range();
    expected_union joined(range.size());
    for (const auto& operand : operands) {
        if (operand.is_dense()) return true;
        joined.add(operand.count());
    }
    return when.wants_dense<T, Index>(joined.count(), range, codes);
}
}  // namespace detail

/// Folds streams of one range into a dense `target` of that size. Each coordinate becomes the left fold of the values
/// that are present, in the order of `operands`, starting from `neutral` if the first operand is sparse.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
void fold_into_dense(std::span<const stream_view<T, Index>> operands, std::span<T> target, const Fold& fold, T neutral,
                     fold_scratch<T, Index>& scratch, const Exec& executor = {}) {
    RILL_EXPECTS(!operands.empty(), "a fold needs an operand");
    if (detail::fold_all_dense(operands, target, fold, scratch, executor)) return;
    // All operands are folded into one stretch of coordinates before the next one, so that the target stays in cache.
    kernel::run_tasks(executor, kernel::tasks(target.size()), [&](segment part) {
        const std::size_t first = operands[0].range().begin;
        const segment coordinates{first + part.begin, first + part.end};
        const auto to = target.subspan(part.begin, part.size());
        copy_dense(operands[0].slice(coordinates), to, neutral);
        for (std::size_t k = 1; k < operands.size(); ++k) detail::fold_one(to, operands[k].slice(coordinates), fold);
    });
}

/// Folds streams of one range into `result`. Each coordinate becomes the left fold of the values that are present, in
/// the order of `operands`. `neutral` must be the fold's neutral element. `result` must not be the source of an
/// operand.
///
/// The result is dense if an operand is, or if `when` finds that the sparse form would be the larger one in the coding
/// `codes`; so its form depends on the operands' forms and counts alone.
///
/// Source: the five cases of SparCML (section 5.1): sparse with sparse (overlapping, or disjoint: concatenation),
/// sparse with dense either way, dense with dense.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
void fold_streams(std::span<const stream_view<T, Index>> operands, stream<T, Index>& result, const Fold& fold,
                  T neutral, dense_switch when, fold_scratch<T, Index>& scratch, const Exec& executor = {},
                  const coding& codes = {}) {
    RILL_EXPECTS(!operands.empty(), "a fold needs an operand");
    const segment range = operands[0].range();
    std::size_t total = 0;
    scratch.sparse.clear();
    for (const auto& operand : operands) {
        RILL_EXPECTS(operand.range() == range, "the operands of a fold must have one range");
        total += operand.count();
        scratch.sparse.push_back(operand.pairs());
    }
    if (detail::folds_to_dense(operands, when, codes)) {
        fold_into_dense(operands, result.make_dense(range), fold, neutral, scratch, executor);
        return;
    }
    const auto room = result.make_sparse(range, total);
    result.shrink(kernel::merge_k(std::span<const sparse_view<T, Index>>(span_of(scratch.sparse)), room.indices,
                                  room.values, fold, scratch.merge, executor));
}

}}  // namespace rill::RILL_ABI
