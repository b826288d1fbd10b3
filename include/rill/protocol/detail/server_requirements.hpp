#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The base of `parameter_server`, so that its messages come before all others.
template <class Net, class Age, class Move, class T>
struct server_requirements {
    static_assert(
        ConcurrentTransport<Net>,
        "rill::parameter_server: the transport does not model ConcurrentTransport, so no rank can serve while "
        "it computes; use in_process, simulated or mpi");
    static_assert(Staleness<Age>,
                  "rill::parameter_server: the policy after the options does not model Staleness, which says how far a "
                  "worker may lead; use straggler::bounded, in_step or unbounded (see rill/concept/staleness.hpp)");
    static_assert(Update<Move, T> || RankedUpdate<Move, T>,
                  "rill::parameter_server: the policy after the staleness models neither Update nor RankedUpdate for "
                  "the model's elements; use train::descent, aggregate::add or aggregate::mean_of_latest (see "
                  "rill/concept/update.hpp)");
};

}}}  // namespace rill::RILL_ABI::detail
