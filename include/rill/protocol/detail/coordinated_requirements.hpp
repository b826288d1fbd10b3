#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// In the place of the mixing, a mixing that a coordinator asks.
template <class Mix>
struct with_coordinator {};

/// The base of a gossip with a coordinator, so that its messages come before all others.
template <class Net, class Mix>
struct coordinated_requirements {
    static_assert(
        ConcurrentTransport<Net>,
        "rill::gossip: the transport does not model ConcurrentTransport, so rank 0 cannot coordinate while it "
        "computes; use in_process, simulated or mpi, or leave the coordinator away");
    static_assert(Mixing<Mix>,
                  "rill::gossip: the second argument does not model Mixing; use topology::bandwidth_matching or "
                  "random_matching (see rill/concept/mixing.hpp)");
    static_assert(Mix::is_doubly_stochastic && Mix::is_symmetric,
                  "rill::gossip: the mixing is not one of pairs that exchange, so a coordinator cannot commit both or "
                  "none; use topology::bandwidth_matching or random_matching, or leave the coordinator away");
};

}}}  // namespace rill::RILL_ABI::detail
