#pragma once

#include <rill/concept/topology.hpp>

#include <bit>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Groups any number of ranks into a power of two of members: each of the first `size - 2^⌊log2 size⌋` adjacent pairs
/// (2i, 2i+1) acts as one member, led by the even rank. Members are numbered in ascending order of their ranks, so
/// ranges of members are ranges of ranks.
class pairing {
  public:
    constexpr pairing() = default;
    constexpr explicit pairing(int size)
        : members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), pairs_(size - members_) {}

    constexpr int members() const { return members_; }
    constexpr int levels() const { return std::countr_zero(static_cast<unsigned>(members_)); }
    constexpr int pairs() const { return pairs_; }

    constexpr bool is_paired(rank_t rank) const { return rank < 2 * pairs_; }
    constexpr bool leads(rank_t rank) const { return !is_paired(rank) || rank % 2 == 0; }
    constexpr int member(rank_t rank) const { return is_paired(rank) ? rank / 2 : rank - pairs_; }
    constexpr rank_t leader(int member) const { return member < pairs_ ? 2 * member : member + pairs_; }

    friend constexpr bool operator==(pairing, pairing) = default;

  private:
    int members_ = 1;
    int pairs_ = 0;
};

}}}  // namespace rill::RILL_ABI::topology
