#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/concept/objective.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/step_record.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// What a strategy is handed to compute with.
struct any_computation {
    double operator()() const;
    double operator()(void (*ready)(std::size_t layer)) const;
};

}  // namespace detail

/// A strategy bound to one rank. It owns its groups or other sessions.
///
/// - `step(parameters, gradient, number, compute)`, collective, makes one step: it may replace the parameters by newer
///   ones, calls `compute` on ranks that contribute, exchanges the gradient, which is lost, and moves the parameters.
///   `compute()` writes the gradient at the parameters and returns the loss; `compute(ready)` also calls `ready(layer)`
///   as soon as that layer's part is final. Gradients that are not finite are left out and told in the record, whose
///   `step` is `number`, or a later one where this rank has missed steps. Once the run has ended the record `is_over`,
///   and its `step` is the number of steps that the run has had, or 0 on a rank that trains in none.
/// - `end()`: the run ends after the last step. All ranks call it after the same step; where a root begins the steps
///   (`partial_bsp`), its call counts and the other ranks learn of it in a later step.
/// - `contributes()`: whether this rank computes gradients. A master does not.
/// - `state()`: what the next step depends on, besides arguments and session; it can be copied, saved and restored.
/// - `position()`, `resume_at(position)`, collective between two steps: where the sessions stand in their numbers of
///   steps and in random numbers.
/// - `add_up(table)`, collective: the sum over all ranks, on all ranks. For the trainer's own agreements.
/// - `require_same_start(bytes)`, which may be left out, collective before the first step: throws on all ranks unless
///   all give the same bytes. A trainer calls it with the first parameters.
template <class B, class T, class Gradient = std::span<T>>
concept BoundStrategy =
    requires(B& bound, const B& constant, std::span<T> parameters, Gradient gradient, std::uint64_t number,
             const detail::any_computation& compute, std::span<std::int64_t> table) {
        { bound.step(parameters, gradient, number, compute) } -> std::same_as<step_record>;
        { bound.end() };
        { constant.contributes() } -> std::same_as<bool>;
        { bound.state() } -> Persistent;
        requires std::copyable<std::remove_reference_t<decltype(bound.state())>>;
        { constant.position() } -> std::same_as<std::uint64_t>;
        { bound.resume_at(number) };
        { bound.add_up(table) };
    };

/// Whether a strategy takes gradients as sparse streams.
template <class S>
concept SparseStrategy = requires { requires S::is_sparse; };

/// How a strategy takes a gradient.
template <class S, class T>
using gradient_of = std::conditional_t<SparseStrategy<S>, stream<T>&, std::span<T>>;

/// How the gradients of all ranks become steps: a value that binds to one rank's end of a transport and to the layers
/// of a model. Binding is collective: it makes the sessions, with the given timeout and seed.
///
/// `replicas_equal`: after each step the parameters are the same on all ranks, bit for bit, and a gradient that is not
/// finite skips the step of all ranks. Else it skips its own rank's contribution alone.
/// `is_layered`: `step` calls `compute(ready)`, else `compute()`.
/// `is_sparse`, which may be left out: the gradient is a `stream<T>&` instead of a span, of a `SparseObjective`.
/// `name`, which may be left out: a checkpoint that names its strategy is refused by a strategy of another name.
template <class S, class Net, class T = float>
concept Strategy = std::copyable<S> &&
                   requires(const S& policy, Net& net, std::span<const layer> layers, const group_options& options) {
                       requires std::same_as<decltype(S::replicas_equal), const bool>;
                       requires std::same_as<decltype(S::is_layered), const bool>;
                       { policy.template bind<T>(net, layers, options) } -> BoundStrategy<T, gradient_of<S, T>>;
                   };

/// The name of a strategy, or of the one that it makes (`automatic`); empty if it has none.
template <class S>
constexpr std::string_view name_of_strategy() {
    if constexpr (requires { S::name; })
        return S::name;
    else if constexpr (requires { typename S::strategy_type; })
        return name_of_strategy<typename S::strategy_type>();
    else
        return {};
}

/// How many parameters a model with these layers has.
inline std::size_t dimension_of(std::span<const layer> layers) { return layers.empty() ? 0 : layers.back().part.end; }

}}}  // namespace rill::RILL_ABI::train
