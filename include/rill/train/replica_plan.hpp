#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/concept/replica.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/train/checkpoint.hpp>

#include <concepts>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A system of training in which no rank waits for all others: a value that binds to one rank's end of a transport and
/// to the first model, equal on all ranks. Binding is collective; it makes the sessions, with the given timeout and
/// seed. The result models `Replica`; once the run has ended, `version()` is that of the final model. It is
/// `Persistent`: saved once the run has ended, restored before the first `pull`, on all ranks. A rank that works saves
/// the model as the section `model`.
template <class P, class Net, class T = float>
concept ReplicaPlan =
    std::copyable<P> && requires(const P& plan, Net& net, std::span<const T> first, const group_options& options) {
        { plan.template bind<T>(net, first, options) } -> Replica<T>;
        { plan.template bind<T>(net, first, options) } -> Persistent;
        { plan.template bind<T>(net, first, options).version() } -> std::same_as<std::uint64_t>;
    };

}}}  // namespace rill::RILL_ABI::train
