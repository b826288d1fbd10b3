#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a rank of a pair averaging knows of another, or of itself.
struct pair_peer {
    bool has_gone = false;      ///< it answers no more
    bool is_lost = false;       ///< one of the two has waited for the other in vain; it may live
    bool has_finished = false;  ///< it asks no more
    bool has_replied = false;   ///< that it has heard this rank's latest call
    bool is_busy = false;       ///< it has refused the exchange that is due
    std::uint64_t heard = 0;    ///< its latest question: see `is_new`

    bool is_there() const { return !has_gone && !is_lost; }
    /// Without its reply, this rank would not learn that it is cut off from it.
    bool is_awaited() const { return is_there() && !(has_finished && has_replied); }
    /// Whether it lives, or has lived until it had finished.
    bool counts() const { return !has_gone || has_finished; }

    /// Whether a question has not come before. An exchange has two: its `ask` and its `request`.
    bool is_new(std::uint64_t question) {
        if (question <= heard) return false;
        heard = question;
        return true;
    }
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const bool flag : {has_gone, is_lost, has_finished, has_replied, is_busy}) visit(flag);
        visit(heard);
    }
};

/// All ranks of a pair averaging, as one of them knows them.
class pair_peers {
  public:
    explicit pair_peers(int size) : peers_(static_cast<std::size_t>(size)), ranks_(peers_.size()) {
        std::iota(ranks_.begin(), ranks_.end(), rank_t{0});
    }

    int size() const { return static_cast<int>(peers_.size()); }
    std::span<const rank_t> ranks() const { return ranks_; }
    pair_peer& at(rank_t rank) { return peers_[static_cast<std::size_t>(rank)]; }
    const pair_peer& at(rank_t rank) const { return peers_[static_cast<std::size_t>(rank)]; }
    auto begin() { return peers_.begin(); }
    auto end() { return peers_.end(); }
    auto begin() const { return peers_.begin(); }
    auto end() const { return peers_.end(); }

    bool await_nobody() const {
        return std::none_of(begin(), end(), [](const pair_peer& each) { return each.is_awaited(); });
    }
    /// If half of those that count are lost: the first of these. Else `no_rank`.
    rank_t cut_off_from() const {
        const auto is_missing = [](const pair_peer& each) { return each.is_lost && each.counts(); };
        const auto living = std::count_if(begin(), end(), [](const pair_peer& each) { return each.counts(); });
        const auto missing = std::count_if(begin(), end(), is_missing);
        if (missing == 0 || 2 * missing < living) return no_rank;
        return static_cast<rank_t>(std::find_if(begin(), end(), is_missing) - begin());
    }

  private:
    std::vector<pair_peer> peers_;
    std::vector<rank_t> ranks_;
};

}}}  // namespace rill::RILL_ABI::detail
