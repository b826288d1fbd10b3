#pragma once

#include <rill/concept/backlog.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The base of `partial_all_reduce`, so that its messages come before all others.
template <class Net, class Start, class Age, class Sum, class Move, class T, class Codec>
struct partial_requirements {
    static_assert(ConcurrentTransport<Net>,
                  "rill::partial_all_reduce: the transport does not model ConcurrentTransport, so no rank can exchange "
                  "while it computes; use in_process, simulated or mpi with MPI_THREAD_MULTIPLE");
    static_assert(Trigger<Start>,
                  "rill::partial_all_reduce: the policy after the group does not model Trigger, which says who starts "
                  "a round; use straggler::solo, majority, two_choices or all_ready (see rill/concept/trigger.hpp)");
    static_assert(Staleness<Age>,
                  "rill::partial_all_reduce: the policy after the trigger does not model Staleness, which says how old "
                  "a gradient may be; use straggler::bounded, in_step, fresh or unbounded (see "
                  "rill/concept/staleness.hpp)");
    static_assert(Backlog<Sum>,
                  "rill::partial_all_reduce: the policy after the staleness does not model Backlog, which says how the "
                  "gradients that have piled up become one; use straggler::plain_sum or linear_mean (see "
                  "rill/concept/backlog.hpp)");
    static_assert(Update<Move, T>,
                  "rill::partial_all_reduce: the policy after the backlog does not model Update for the model's "
                  "elements; use train::descent (see rill/concept/update.hpp)");
    static_assert(
        requires(const Codec& codec) { codec.template bind<T>(0); },
        "rill::partial_all_reduce: the last argument is no compressor for the model's elements; pass the "
        "compressor itself, such as error_feedback{top_k{.density = 0.01}}, and not what its bind returns");
};

}}}  // namespace rill::RILL_ABI::detail
