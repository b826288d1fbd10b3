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
/// left over; all take turns at that. Memory: four numbers per rank; a round costs O(P) steps. Models `Mixing`.
/// Source: Boyd et al. 2006.
struct random_matching {
    static constexpr const char* name = "random_matching";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = false;

    class bound {
      public:
        RILL_CONSTEXPR_VECTORS bound(int size, random_key key)
            : order_(detail::checked_size(size), key), turns_(size, key.derive(1)) {}
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t round, rank_t rank, mixing_row& row) {
            detail::clear(row);
            order_.choose(round);
            const rank_t rests = turns_.at(static_cast<int>(round % static_cast<std::uint64_t>(turns_.size())));
            const bool is_odd = order_.size() % 2 != 0;
            if (is_odd && rank == rests) return;
            // The one that rests and the last one change places, so that it is left over.
            const rank_t last = order_.at(order_.size() - 1);
            const int partner = order_.place_of(is_odd && rank == last ? rests : rank) ^ 1;
            const rank_t peer = is_odd && order_.at(partner) == rests ? last : order_.at(partner);
            detail::halve(row, peer, peer);
        }

      private:
        detail::shuffled_ranks order_;  ///< of the round
        detail::shuffled_ranks turns_;  ///< in which ranks rest
    };

    static RILL_CONSTEXPR_VECTORS bound bind(int size, random_key key) { return {size, key}; }
    friend constexpr bool operator==(random_matching, random_matching) = default;
};

static_assert(Mixing<random_matching>);

}}}  // namespace rill::RILL_ABI::topology
