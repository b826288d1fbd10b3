// Linear combinations of dense vectors.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// acc += factor * x. The product is rounded before the sum, so that no build fuses the two.
template <std::floating_point T>
void add_multiple(T* acc, const T* x, T factor) {
    for (std::size_t i = 0; i < fold_block; i += block) {
        T product[block];
        for (std::size_t j = 0; j < block; ++j) product[j] = factor * x[i + j];
        round_here(product);
        for (std::size_t j = 0; j < block; ++j) acc[i + j] += product[j];
    }
}

/// Combines the entries of `part`, which begins at a multiple of `fold_block`.
template <std::floating_point T>
void combine_part(std::span<const std::span<const T>> inputs, std::span<const T> factors, segment part,
                  std::span<T> out) {
    alignas(64) T acc[fold_block];  // a local array: no output can alias an input within a block
    alignas(64) T rest[fold_block];
    for (std::size_t i = part.begin; i < part.end; i += fold_block) {
        const std::size_t count = std::min(fold_block, part.end - i);
        std::fill_n(acc, fold_block, T{0});
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            const T* x = inputs[k].data() + i;
            if (count < fold_block)
                x = rest, std::fill(std::copy_n(inputs[k].data() + i, count, rest), rest + fold_block, T{0});
            add_multiple(acc, x, factors[k]);
        }
        std::copy_n(acc, count, out.data() + i);
    }
}

}  // namespace detail

/// Computes out[i] = Σ factors[k] · inputs[k][i], in the order of the inputs. No inputs give zeros.
///
/// All inputs are as long as `out`. `out` may be one of the inputs; it may not overlap one otherwise. Cost: one pass
/// over the inputs and the output. Each product and each sum is rounded, so that every build gives the same bits.
template <std::floating_point T, Executor Exec = serial>
void combine_k(std::span<const std::span<const T>> inputs, std::span<const T> factors, std::span<T> out,
               const Exec& executor = {}) {
    RILL_EXPECTS(inputs.size() == factors.size(), "combine_k: a factor for each input");
    for ([[maybe_unused]] const auto& input : inputs)
        RILL_EXPECTS(input.size() == out.size(), "combine_k: an input differs in length from the output");
    run_tasks(executor, tasks_for(executor, out.size(), detail::fold_block),
              [&](segment part) { detail::combine_part(inputs, factors, part, out); });
}

}}}  // namespace rill::RILL_ABI::kernel
