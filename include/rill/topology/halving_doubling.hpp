#pragma once

#include <rill/concept/topology.hpp>
#include <rill/topology/butterfly.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Recursive halving leaves each rank one finished part; recursive doubling then sends the parts to all ranks. Models
/// `Topology`.
///
/// With L = ⌊log2 P⌋: if P is not a power of two, each pair of ranks (2i, 2i+1), i < P - 2^L, acts as one rank, at the
/// cost of one round before and one after (in parentheses below).
/// Cost: `all_reduce` takes 2L (+2) rounds over 2^L parts and sends 2N(2^L - 1)/2^L per rank; the first rank of a pair
/// sends N more, the second sends only N. `reduce_scatter` takes L (+2) rounds and sends at most N per rank.
/// `all_gather` takes L (+2) rounds and sends less than 4N/3 per rank; the first rank of a pair sends less than N more.
/// Determinism: the farthest rank is folded first, so contributions are combined in bit-reversed order.
/// Source: Rabenseifner, Optimization of collective reduction operations, ICCS 2004.
struct halving_doubling {
    static constexpr const char* name = "halving_doubling";
    static constexpr bool preserves_rank_order = false;
    static constexpr bool has_copy_phase = true;

    constexpr butterfly_schedule all_reduce(int size, rank_t rank) const {
        return {butterfly_plan::halve_then_double, size, rank};
    }
    constexpr butterfly_schedule reduce_scatter(int size, rank_t rank) const {
        return {butterfly_plan::halve_far, size, rank};
    }
    constexpr butterfly_schedule all_gather(int size, rank_t rank) const {
        return {butterfly_plan::gather, size, rank};
    }

    friend constexpr bool operator==(halving_doubling, halving_doubling) = default;
};

static_assert(Topology<halving_doubling>);

}}}  // namespace rill::RILL_ABI::topology
