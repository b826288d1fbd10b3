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
        "rotating, random_matching, metropolis or directed (see rill/concept/mixing.hpp)");
};

}}}  // namespace rill::RILL_ABI::detail
