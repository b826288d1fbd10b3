// Folds of dense vectors.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// Entries folded at a time: few enough to stay in the L1 cache, enough to hide the cost of changing from input to
/// input.
inline constexpr std::size_t fold_block = 256;

template <Element T, class Fold>
void fold_into(T* acc, const T* x, Fold& fold) {
    for (std::size_t i = 0; i < fold_block; i += block)
        for (std::size_t j = 0; j < block; ++j) acc[i + j] = fold(acc[i + j], x[i + j]);
}

/// Folds the entries of `part`, which begins at a multiple of `fold_block`.
template <Element T, class Fold>
void fold_part(std::span<const std::span<const T>> inputs, segment part, std::span<T> out, Fold& fold) {
    alignas(64) T acc[fold_block];  // a local array: no output can alias an input within a block
    std::size_t i = part.begin;
    for (; i + fold_block <= part.end; i += fold_block) {
        rill::detail::copy_elements(inputs[0].data() + i, fold_block, acc);
        for (std::size_t k = 1; k < inputs.size(); ++k) fold_into(acc, inputs[k].data() + i, fold);
        rill::detail::copy_elements(acc, fold_block, out.data() + i);
    }
    const std::size_t rest = std::min(part.end - i, fold_block);  // g++ 12 warns of an index without a bound
    for (std::size_t j = 0; j < rest; ++j) {
        T value = inputs[0].data()[i + j];
        for (std::size_t k = 1; k < inputs.size(); ++k) value = fold(value, inputs[k].data()[i + j]);
        out.data()[i + j] = value;
    }
}

}  // namespace detail

/// Sets every entry to one value.
template <Element T>
void fill(std::span<T> x, T value) {
    using detail::block;
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block)
        for (std::size_t j = 0; j < block; ++j) x[i + j] = value;
    for (; i < x.size(); ++i) x[i] = value;
}

/// Sets out[i] to the left fold of the inputs' entries i, in the order of the inputs. A single input is copied.
///
/// There is at least one input. All inputs are as long as `out`. `out` may be one of the inputs; it may not overlap one
/// otherwise. Cost: one pass over the inputs and the output.
template <Element T, class Fold, Executor Exec = serial>
[[gnu::noinline]] void fold_dense_k(std::span<const std::span<const T>> inputs, std::span<T> out, Fold&& fold,
                                    const Exec& executor = {}) {
    RILL_EXPECTS(!inputs.empty(), "fold_dense_k: there is nothing to fold");
    for (std::size_t k = 0; k < inputs.size(); ++k)
        RILL_EXPECTS(inputs[k].size() == out.size(), "fold_dense_k: an input differs in length from the output");
    run_tasks(executor, tasks_for(executor, out.size(), detail::fold_block),
              [&](segment part) { detail::fold_part(inputs, part, out, fold); });
}

/// acc[i] = fold(acc[i], x[i]). `acc` and `x` are equally long; they are the same memory or do not overlap.
template <Element T, class Fold>
void fold_dense(std::span<T> acc, std::span<const T> x, Fold&& fold) {
    const std::span<const T> inputs[] = {acc, x};
    fold_dense_k<T>(inputs, acc, fold);
}

}}}  // namespace rill::RILL_ABI::kernel
