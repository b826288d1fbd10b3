#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology::detail {

/// Sets of ranks that are joined one edge at a time. Source: Tarjan 1975, with path halving.
class disjoint_sets {
  public:
    explicit disjoint_sets(int size) : parent_(static_cast<std::size_t>(size)) {
        for (std::size_t i = 0; i < parent_.size(); ++i) parent_[i] = static_cast<rank_t>(i);
    }

    /// One rank stands for all of its set.
    rank_t of(rank_t rank) {
        while (at(rank) != rank) rank = std::exchange(at(rank), at(at(rank)));
        return rank;
    }
    /// False if they have been in one set.
    bool join(rank_t a, rank_t b) {
        a = of(a), b = of(b);
        at(a) = b;
        return a != b;
    }

  private:
    rank_t& at(rank_t rank) { return parent_[static_cast<std::size_t>(rank)]; }

    std::vector<rank_t> parent_;
};

}}}  // namespace rill::RILL_ABI::topology::detail
