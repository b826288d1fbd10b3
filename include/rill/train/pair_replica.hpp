#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/core/config.hpp>
#include <rill/protocol/pair_averaging.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Training by models that average in pairs (`pair_averaging`).
///
/// Models `ReplicaPlan`. Each rank has a model of its own, so that each has other parameters at the end.
template <class Who, class Move>
struct pair_replica {
    static constexpr const char* name = "pair_replica";

    Who pairing{};
    Move update{};

    template <std::floating_point T = float, class Net>
    pair_averaging<Net, T, Who, Move> bind(Net& net, std::span<const T> first,
                                           const group_options& options = {}) const {
        return {net, pairing, update, first, options};
    }
};

template <class W, class U>
pair_replica(W, U) -> pair_replica<W, U>;

}}}  // namespace rill::RILL_ABI::train
