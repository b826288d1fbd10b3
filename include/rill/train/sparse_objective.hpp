#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A function to minimise whose gradient is 0 but for a few coordinates: the mean loss of a model over the samples of a
/// `batch`. It may be an `Objective` too, by an overload of `gradient` that takes a span.
///
/// - `gradient(parameters, batch, output)` overwrites the stream with a sparse one over `[0, dimension())`. That has an
///   entry for each coordinate on which the loss of the batch depends. Other derivatives are 0. It returns the loss.
/// - Nothing in it passes over all parameters: what it computes and allocates depends on the batch alone. After the
///   first call with a batch of this size it allocates nothing.
/// - Else as `Objective`: it owns its scratch, and `gradient` and `loss` are pure functions of parameters and batch.
///
/// Laws: `testing::for_each_sparse_objective_law`.
template <class O>
concept SparseObjective = std::floating_point<typename O::scalar> && std::movable<O> &&
                          requires(O& objective, const O& constant, std::span<typename O::scalar> room,
                                   std::span<const typename O::scalar> parameters, const typename O::batch& samples,
                                   random_key key, stream<typename O::scalar>& output) {
                              { constant.dimension() } -> std::same_as<std::size_t>;
                              { constant.layers() } -> std::same_as<std::span<const layer>>;
                              { constant.initialise(room, key) };
                              { objective.loss(parameters, samples) } -> std::same_as<double>;
                              { objective.gradient(parameters, samples, output) } -> std::same_as<double>;
                          };

/// What a trainer can train.
template <class O>
concept Trainable = Objective<O> || SparseObjective<O>;

}}}  // namespace rill::RILL_ABI::train
