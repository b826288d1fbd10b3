#pragma once

#include <rill/concept/topology.hpp>
#include <rill/topology/butterfly.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// In round k every rank exchanges all that it has with the rank whose number differs in bit k. Models `Topology`.
///
/// With L = ⌊log2 P⌋: if P is not a power of two, each pair of ranks (2i, 2i+1), i < P - 2^L, acts as one rank, at the
/// cost of one round before and one after (in parentheses below).
/// Cost: `all_reduce` takes L (+2) rounds and sends at most N·(L+1) per rank: the fewest rounds, for small N.
/// `reduce_scatter` halves, nearest rank first, and then sends each part to its rank: L+1 (+1) rounds, at most N per
/// rank. `all_gather` doubles: L (+2) rounds, less than 4N/3 per rank; the first rank of a pair sends less than N more.
/// Determinism: ascending order of ranks. Every rank folds the result itself, so no single owner could code it once:
/// there is no copy phase (rounds in which finished parts are sent on unchanged).
/// Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, IJHPCA 2005,
/// section 4. `reduce_scatter` deviates: the paper starts with the farthest rank, which does not keep the order of
/// ranks.
struct recursive_doubling {
    static constexpr const char* name = "recursive_doubling";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = false;

    constexpr butterfly_schedule all_reduce(int size, rank_t rank) const {
        return {butterfly_plan::exchange, size, rank};
    }
    constexpr butterfly_schedule reduce_scatter(int size, rank_t rank) const {
        return {butterfly_plan::halve_near, size, rank};
    }
    constexpr butterfly_schedule all_gather(int size, rank_t rank) const {
        return {butterfly_plan::gather, size, rank};
    }

    friend constexpr bool operator==(recursive_doubling, recursive_doubling) = default;
};

static_assert(Topology<recursive_doubling>);

}}}  // namespace rill::RILL_ABI::topology
