#pragma once

#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rill { inline namespace RILL_ABI {

/// A named, consecutive part of a flat parameter vector, in the order of the forward pass.
struct layer {
    std::string name;
    segment part{};

    friend bool operator==(const layer&, const layer&) = default;
};

/// A function to minimise: the mean loss of a model over the samples of a `batch`.
///
/// Parameters and gradient are flat vectors of `dimension()` scalars that the caller owns; `layers()` divides them
/// without gaps. An objective owns its scratch memory: one object per rank, no sharing between threads. After the first
/// call with a batch size, `gradient` allocates nothing.
/// Laws: `initialise` is a pure function of the key; `gradient` and `loss` are pure functions of parameters and batch,
/// bit for bit within one binary; `gradient` returns what `loss` returns and overwrites all of its output.
template <class O>
concept Objective =
    std::floating_point<typename O::scalar> && std::movable<O> &&
    requires(O& objective, const O& constant, std::span<typename O::scalar> output,
             std::span<const typename O::scalar> parameters, const typename O::batch& samples, random_key key) {
        { constant.dimension() } -> std::same_as<std::size_t>;
        { constant.layers() } -> std::same_as<std::span<const layer>>;
        { constant.initialise(output, key) };
        { objective.loss(parameters, samples) } -> std::same_as<double>;
        { objective.gradient(parameters, samples, output) } -> std::same_as<double>;
    };

/// An objective that reports which parts of its gradient are final while it computes the others, in an overload
/// `gradient(parameters, batch, output, ready)`: it calls `ready(i)` once for each of `layers()`, usually from the last
/// to the first.
///
/// Laws: it gives the same bits as `gradient` without `ready`. After `ready(i)` it neither reads nor writes part i, so
/// that the part may be sent, and overwritten. Exceptions of `ready` propagate.
template <class O>
concept LayeredObjective =
    Objective<O> &&
    requires(O& objective, std::span<typename O::scalar> output, std::span<const typename O::scalar> parameters,
             const typename O::batch& samples, void (*ready)(std::size_t layer)) {
        { objective.gradient(parameters, samples, output, ready) } -> std::same_as<double>;
    };

/// An objective whose model classifies samples: `predict` writes one class per sample.
template <class O>
concept Classifier = Objective<O> && requires(O& objective, std::span<const typename O::scalar> parameters,
                                              const typename O::batch& samples, std::span<std::int32_t> classes) {
    { objective.predict(parameters, samples, classes) };
};

}}  // namespace rill::RILL_ABI
