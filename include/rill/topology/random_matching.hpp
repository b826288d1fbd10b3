#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/mixing_rows.hpp>
#include <rill/topology/detail/shuffled_ranks.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// In each round all ranks form pairs, drawn anew, which exchange their models half and half. Of an odd number one is
/// left over, each time another. Memory: two numbers per rank; a round costs O(P) steps. Models `Mixing`.
/// Source: Boyd et al. 2006.
struct random_matching {
    static constexpr const char* name = "random_matching";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = false;

    class bound {
      public:
        RILL_CONSTEXPR_VECTORS bound(int size, random_key key) : order_(detail::checked_size(size), key) {}
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t round, rank_t rank, mixing_row& row) {
            detail::clear(row);
            order_.choose(round);
            const int partner = order_.place_of(rank) ^ 1;
            if (partner < order_.size()) detail::halve(row, order_.at(partner), order_.at(partner));
        }

      private:
        detail::shuffled_ranks order_;
    };

    static RILL_CONSTEXPR_VECTORS bound bind(int size, random_key key) { return {size, key}; }
    friend constexpr bool operator==(random_matching, random_matching) = default;
};

static_assert(Mixing<random_matching>);

}}}  // namespace rill::RILL_ABI::topology
