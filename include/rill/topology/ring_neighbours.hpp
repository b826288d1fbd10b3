#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/mixing_rows.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Each rank mixes with the two next to it on a ring, each with weight ⅓, its own too; of two ranks, each has ½. Models
/// `Mixing`. Source: D-PSGD (Lian et al. 2017).
struct ring_neighbours {
    static constexpr const char* name = "ring_neighbours";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = true;

    class bound {
      public:
        constexpr explicit bound(int size) : size_(detail::checked_size(size)) {}
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t, rank_t rank, mixing_row& row) const {
            detail::clear(row);
            if (size_ == 1) return;
            const rank_t next = (rank + 1) % size_, previous = (rank + size_ - 1) % size_;
            const double weight = size_ == 2 ? 1.0 / 2 : 1.0 / 3;
            detail::exchange_with(row, next, weight);
            if (previous != next) detail::exchange_with(row, previous, weight);
            row.own_weight = weight;
        }

      private:
        int size_;
    };

    static constexpr bound bind(int size, random_key) { return bound(size); }
    friend constexpr bool operator==(ring_neighbours, ring_neighbours) = default;
};

static_assert(Mixing<ring_neighbours>);

}}}  // namespace rill::RILL_ABI::topology
