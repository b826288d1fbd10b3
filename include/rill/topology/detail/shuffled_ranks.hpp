#pragma once

#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology::detail {

/// All ranks in a random order, which is another one for each number. Memory: two numbers per rank; O(1) but for the
/// first look at each order, which is O(P).
class shuffled_ranks {
  public:
    RILL_CONSTEXPR_VECTORS shuffled_ranks(int size, random_key key)
        : key_(key), order_(static_cast<std::size_t>(size), no_rank), place_(order_.size(), 0) {
        draw(0);
    }

    RILL_CONSTEXPR_VECTORS int size() const { return static_cast<int>(order_.size()); }
    RILL_CONSTEXPR_VECTORS void choose(std::uint64_t number) {
        if (number != number_) draw(number);
    }
    RILL_CONSTEXPR_VECTORS int place_of(rank_t rank) const { return place_[static_cast<std::size_t>(rank)]; }
    RILL_CONSTEXPR_VECTORS rank_t at(int place) const { return order_[static_cast<std::size_t>(place)]; }

  private:
    RILL_CONSTEXPR_VECTORS void draw(std::uint64_t number) {
        number_ = number;
        random_sequence random(key_.derive(number));
        for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<rank_t>(i);
        for (std::size_t left = order_.size(); left > 1; --left)
            std::swap(order_[left - 1], order_[static_cast<std::size_t>(random.below(left))]);
        for (std::size_t i = 0; i < order_.size(); ++i)
            place_[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
    }

    random_key key_;
    std::uint64_t number_ = 0;
    std::vector<rank_t> order_;
    std::vector<int> place_;
};

}}}  // namespace rill::RILL_ABI::topology::detail
