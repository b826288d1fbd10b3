#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/mixing_rows.hpp>
#include <rill/topology/detail/shuffled_ranks.hpp>
#include <rill/topology/exponential.hpp>

#include <bit>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Like `exponential`, but every ⌈log2 P⌉ rounds the ranks change places at random, so that each gets new partners. Any
/// number of ranks. Memory: two numbers per rank. Models `Mixing`. Source: GossipGraD (Daily et al. 2018).
struct rotating {
    static constexpr const char* name = "rotating";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = false;
    static constexpr bool keeps_neighbours = false;

    class bound {
      public:
        RILL_CONSTEXPR_VECTORS bound(int size, random_key key) : order_(detail::checked_size(size), key) {}
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t round, rank_t rank, mixing_row& row) {
            detail::clear(row);
            const int size = order_.size();
            if (size == 1) return;
            order_.choose(round / static_cast<unsigned>(std::bit_width(static_cast<unsigned>(size - 1))));
            const int hop = exponential::hop_of(round, size), place = order_.place_of(rank);
            detail::halve(row, order_.at((place + size - hop) % size), order_.at((place + hop) % size));
        }

      private:
        detail::shuffled_ranks order_;
    };

    static RILL_CONSTEXPR_VECTORS bound bind(int size, random_key key) { return {size, key}; }
    friend constexpr bool operator==(rotating, rotating) = default;
};

static_assert(Mixing<rotating>);

}}}  // namespace rill::RILL_ABI::topology
