#pragma once

#include <rill/concept/pairing.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/config.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The base of `pair_averaging`, so that its messages come before all others.
template <class Net, class Who, class Move, class T>
struct pair_requirements {
    static_assert(ConcurrentTransport<Net>,
                  "rill::pair_averaging: the transport does not model ConcurrentTransport, so no rank can answer while "
                  "it computes; use in_process, simulated or mpi with MPI_THREAD_MULTIPLE");
    static_assert(Pairing<Who>,
                  "rill::pair_averaging: the policy after the transport does not model Pairing, which says who may ask "
                  "whom; use topology::bipartite or anyone (see rill/concept/pairing.hpp)");
    static_assert(std::floating_point<T>,
                  "rill::pair_averaging: the model's elements are no floating-point numbers, which cannot be halved");
    static_assert(Update<Move, T>,
                  "rill::pair_averaging: the policy after the pairing does not model Update for the model's elements; "
                  "use train::descent (see rill/concept/update.hpp)");
};

}}}  // namespace rill::RILL_ABI::detail
