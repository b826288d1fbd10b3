#pragma once

#include <rill/core/config.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What becomes of a contribution: it is in no result, shares the fate of its parent's contribution, or is in a result.
enum class contribution_fate : unsigned char { out, with_mine, in };

/// What a rank knows about its children in a tree: which round each is at, and what became of its contribution.
class round_children {
  public:
    struct link {
        rank_t rank = no_rank;
        std::uint64_t given = 0;                            ///< the round of the latest state
        std::uint64_t answered = 0;                         ///< the round of the latest contribution
        contribution_fate latest = contribution_fate::out;  ///< of that contribution
        std::optional<time_point> missed_since{};
        bool has_no_room = false;  ///< its mailbox was full
        bool is_asked = true;      ///< for a contribution to the round under way

        /// Whether it has answered the latest state, and so can be given the next one.
        bool is_ready() const { return given == answered; }
        void begins(std::uint64_t round) {
            given = round;
            missed_since.reset();
        }
    };

    void add(rank_t rank) { links_.push_back({.rank = rank}); }

    bool empty() const { return links_.empty(); }
    std::size_t size() const { return links_.size(); }
    int count() const { return static_cast<int>(links_.size()); }
    auto begin() const { return links_.begin(); }
    auto end() const { return links_.end(); }
    auto begin() { return links_.begin(); }
    auto end() { return links_.end(); }

    link& operator[](int number) { return links_[static_cast<std::size_t>(number)]; }
    const link& operator[](int number) const { return links_[static_cast<std::size_t>(number)]; }
    const link& of(rank_t rank) const {
        return *std::find_if(links_.begin(), links_.end(), [&](const link& each) { return each.rank == rank; });
    }
    link& of(rank_t rank) { return const_cast<link&>(std::as_const(*this).of(rank)); }
    int number_of(const link& child) const { return static_cast<int>(&child - links_.data()); }

    /// The numbers of the children whose contributions are in the round under way.
    std::span<const int> in() const { return span_of(in_); }
    void begin_round() { in_.clear(); }
    /// Only these children take part in the round under way. `places`: their numbers.
    void ask(std::span<const int> places) {
        for (link& each : links_) each.is_asked = false;
        for (const int place : places) (*this)[place].is_asked = true;
    }
    /// How many contributions may be in the round under way: those that are in count, whoever is asked.
    int expected() const {
        const auto is_expected = [](const link& each) { return each.is_asked; };
        const auto asked = std::count_if(links_.begin(), links_.end(), is_expected);
        const auto others =
            std::count_if(in_.begin(), in_.end(), [&](int number) { return !is_expected((*this)[number]); });
        return static_cast<int>(asked + others);
    }
    void answers(link& child, std::uint64_t round, contribution_fate becomes) {
        child.answered = round;
        child.latest = becomes;
        if (becomes == contribution_fate::out) return;
        const int number = number_of(child);
        if (const auto at = std::lower_bound(in_.begin(), in_.end(), number); at == in_.end() || *at != number)
            in_.insert(at, number);
    }

    /// Children folded into this rank's contribution share its fate.
    void learn_fate(bool mine_was_in) {
        for (link& each : links_)
            if (each.latest == contribution_fate::with_mine)
                each.latest = mine_was_in ? contribution_fate::in : contribution_fate::out;
    }

    /// `parent`, and the children that are not at work on a state.
    std::span<const rank_t> ready_with(rank_t parent) {
        ready_.assign(1, parent);
        for (const link& each : links_)
            if (each.is_ready()) ready_.push_back(each.rank);
        return span_of(ready_);
    }
    std::vector<rank_t> at_work() const {
        std::vector<rank_t> ranks;
        for (const link& each : links_)
            if (!each.is_ready()) ranks.push_back(each.rank);
        return ranks;
    }
    /// Whether all that are asked have the state of this round.
    bool all_have(std::uint64_t round) const {
        return std::all_of(links_.begin(), links_.end(),
                           [&](const link& each) { return each.given == round || !each.is_asked; });
    }
    /// The first child that is asked and still at work, or else the first whose mailbox had no room for the state of
    /// this round, or else the first that is at work on an earlier one.
    rank_t first_missing(std::uint64_t round) const {
        const auto first = [&](auto&& is_missing) {
            const auto found = std::find_if(links_.begin(), links_.end(), is_missing);
            return found == links_.end() ? no_rank : found->rank;
        };
        const rank_t asked = first([](const link& each) { return each.is_asked && !each.is_ready(); });
        if (asked != no_rank) return asked;
        const rank_t full = first([&](const link& each) { return each.is_asked && each.given != round; });
        return full != no_rank ? full : first([](const link& each) { return !each.is_ready(); });
    }

    /// Visits all that decides what comes.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const link& each : links_) {
            for (const std::uint64_t number : {each.given, each.answered}) visit(number);
            visit(each.latest);
            for (const bool flag : {each.missed_since.has_value(), each.has_no_room, each.is_asked}) visit(flag);
        }
        visit(in_.size());
        for (const int number : in_) visit(number);
    }

  private:
    std::vector<link> links_;
    std::vector<rank_t> ready_;
    std::vector<int> in_;
};

}}}  // namespace rill::RILL_ABI::detail
