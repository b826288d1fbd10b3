// The compile-time messages about replicas and what is handed to them.
#pragma once

#include <rill/concept/backlog.hpp>
#include <rill/concept/pairing.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/config.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Checks a model or a gradient that is handed to a replica whose elements are `T`.
template <class X, class T>
consteval bool require_replica_tensor() {
    constexpr bool is_tensor = Tensor<X>;
    static_assert(is_tensor,
                  "rill::Replica: the model or gradient is not a tensor; pass a contiguous range, or a tensor of a "
                  "library whose adapter you include (rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp)");
    if constexpr (is_tensor)
        static_assert(std::same_as<tensor_element<X>, T>,
                      "rill::Replica: the model or gradient has other elements than the model that the replica was "
                      "made with; convert it, nothing is converted on the way");
    return true;
}

/// Whether `N` was meant as a group, which brings its transport along.
template <class N>
concept MeantAsGroup = requires { typename N::lane_type; };

// What deduction guides make of arguments that no replica takes: a class whose only content is a message.
struct wrong_arguments {};  ///< too few, too many, or of another kind
struct wrong_first {};      ///< a transport in place of a group, or a group in place of a transport
template <class N>
concept WrongCall = std::same_as<N, wrong_arguments> || std::same_as<N, wrong_first>;

/// The base of `partial_all_reduce`, so that its messages come before all others.
template <class Net, class Start, class Age, class Sum, class Move, class T, class Codec>
struct partial_requirements {
    static_assert(ConcurrentTransport<Net>,
                  "rill::partial_all_reduce: the transport does not model ConcurrentTransport, so no rank can exchange "
                  "while it computes; use in_process, simulated, tcp, or mpi with MPI_THREAD_MULTIPLE");
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

/// The base of `pair_averaging`, so that its messages come before all others.
template <class Net, class Who, class Move, class T>
struct pair_requirements {
    static_assert(ConcurrentTransport<Net>,
                  "rill::pair_averaging: the transport does not model ConcurrentTransport, so no rank can answer while "
                  "it computes; use in_process, simulated, tcp, or mpi with MPI_THREAD_MULTIPLE");
    static_assert(Pairing<Who>,
                  "rill::pair_averaging: the policy after the transport does not model Pairing, which says who may ask "
                  "whom; use topology::bipartite or anyone (see rill/concept/pairing.hpp)");
    static_assert(std::floating_point<T>,
                  "rill::pair_averaging: the model's elements are no floating-point numbers, which cannot be halved");
    static_assert(Update<Move, T>,
                  "rill::pair_averaging: the policy after the pairing does not model Update for the model's elements; "
                  "use train::descent (see rill/concept/update.hpp)");
};

/// The base of `parameter_server`, so that its messages come before all others.
template <class Net, class Age, class Move, class T>
struct server_requirements {
    static_assert(
        ConcurrentTransport<Net>,
        "rill::parameter_server: the transport does not model ConcurrentTransport, so no rank can serve while "
        "it computes; use in_process, simulated, tcp or mpi");
    static_assert(Staleness<Age>,
                  "rill::parameter_server: the policy after the options does not model Staleness, which says how far a "
                  "worker may lead; use straggler::bounded, in_step or unbounded (see rill/concept/staleness.hpp)");
    static_assert(Update<Move, T> || RankedUpdate<Move, T>,
                  "rill::parameter_server: the policy after the staleness models neither Update nor RankedUpdate for "
                  "the model's elements; use train::descent, aggregate::add or aggregate::mean_of_latest (see "
                  "rill/concept/update.hpp)");
};

}}}  // namespace rill::RILL_ABI::detail
