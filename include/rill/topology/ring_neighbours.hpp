#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/mixing_rows.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Each rank mixes with the two next to it on a ring: it has the weight `own`, at least 0 and below 1, and they have
/// one half of the rest each; of two ranks, each has ½. Models `Mixing`. Source: D-PSGD (Lian et al. 2017).
struct ring_neighbours {
    static constexpr const char* name = "ring_neighbours";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = true;

    double own = 1.0 / 3;

    class bound {
      public:
        constexpr bound(int size, double own) : size_(detail::checked_size(size)), own_(own) {
            RILL_EXPECTS(own >= 0 && own < 1,
                         "topology::ring_neighbours: a rank's own weight is at least 0 and below 1");
        }
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t, rank_t rank, mixing_row& row) const {
            detail::clear(row);
            if (size_ == 1) return;
            const rank_t next = (rank + 1) % size_, previous = (rank + size_ - 1) % size_;
            if (size_ == 2) return detail::halve(row, next, next);
            detail::exchange_with(row, next, (1 - own_) / 2);
            detail::exchange_with(row, previous, (1 - own_) / 2);
            row.own_weight = own_;
        }

      private:
        int size_;
        double own_;
    };

    constexpr bound bind(int size, random_key) const { return {size, own}; }
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("own", own);
    }
    friend constexpr bool operator==(const ring_neighbours&, const ring_neighbours&) = default;
};

static_assert(Mixing<ring_neighbours>);

}}}  // namespace rill::RILL_ABI::topology
