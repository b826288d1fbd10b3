#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/mixing_rows.hpp>

#include <bit>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// In round t each rank sends to the one that is 2^(t mod ⌈log2 P⌉) further and receives from the one that is as far
/// behind; it halves. One message each way; after ⌈log2 P⌉ rounds all models have met, and where P is a power of two
/// each is then the mean of all. Models `Mixing`. Source: SGP (Assran et al. 2019).
struct exponential {
    static constexpr const char* name = "exponential";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = false;
    static constexpr bool keeps_neighbours = false;

    class bound {
      public:
        constexpr explicit bound(int size) : size_(detail::checked_size(size)) {}
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t round, rank_t rank, mixing_row& row) const {
            detail::clear(row);
            if (size_ == 1) return;
            const int hop = hop_of(round, size_);
            detail::halve(row, (rank + size_ - hop) % size_, (rank + hop) % size_);
        }

      private:
        int size_;
    };

    /// How far messages of a round go among `size` > 1 ranks.
    static constexpr int hop_of(std::uint64_t round, int size) {
        const auto levels = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(size - 1)));
        return 1 << (round % levels);
    }
    static constexpr bound bind(int size, random_key) { return bound(size); }
    friend constexpr bool operator==(exponential, exponential) = default;
};

static_assert(Mixing<exponential>);

}}}  // namespace rill::RILL_ABI::topology
