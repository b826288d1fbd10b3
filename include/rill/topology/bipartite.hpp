#pragma once

#include <rill/concept/pairing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Ranks of even number ask those of odd number. Who is asked never asks itself, so that it always answers at once.
/// Models `Pairing`. Source: AD-PSGD (Lian et al. 2018), which avoids deadlocks so.
struct bipartite {
    static constexpr const char* name = "bipartite";

    static constexpr bool asks(rank_t asker, rank_t other, int) { return asker % 2 == 0 && other % 2 == 1; }
    friend constexpr bool operator==(bipartite, bipartite) = default;
};

static_assert(Pairing<bipartite>);

}}}  // namespace rill::RILL_ABI::topology
