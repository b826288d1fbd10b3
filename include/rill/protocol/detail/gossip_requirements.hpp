#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The base of `gossip`, so that its messages come before all others.
template <class Mix>
struct gossip_requirements {
    static_assert(
        Mixing<Mix>,
        "rill::gossip: the second argument does not model Mixing; use topology::ring_neighbours, exponential, "
        "rotating, random_matching or metropolis (see rill/concept/mixing.hpp)");
    static_assert(Mix::is_doubly_stochastic,
                  "rill::gossip: the mixing does not keep the mean of all models, since its rows do not sum to 1; use "
                  "one that says is_doubly_stochastic (see rill/concept/mixing.hpp)");
};

}}}  // namespace rill::RILL_ABI::detail
