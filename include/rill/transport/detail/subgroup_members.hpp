#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Translates between ranks of the parent ("outer") and ranks of the subgroup ("inner").
class subgroup_members {
  public:
    subgroup_members(rill::view of, rank_t self, int parent_size) : view_(std::move(of)), self_(inner_or_none(self)) {
        check(parent_size);
        RILL_EXPECTS(self_ != no_rank,
                     ("subgroup: rank " + std::to_string(self) + " is not among the members").c_str());
    }
    subgroup_members(const subgroup_members&) = delete;
    subgroup_members& operator=(const subgroup_members&) = delete;
    ~subgroup_members() { delete spare_.load(); }

    const rill::view& view() const { return view_; }
    rank_t rank() const { return self_; }
    int size() const { return static_cast<int>(view_.members.size()); }

    rank_t outer(rank_t inner) const { return view_.members[static_cast<std::size_t>(inner)]; }
    rank_t outer_or_none(rank_t inner) const { return 0 <= inner && inner < size() ? outer(inner) : no_rank; }
    rank_t inner_or_none(rank_t outer_rank) const {
        const auto& members = view_.members;
        const auto found = std::lower_bound(members.begin(), members.end(), outer_rank);
        return found != members.end() && *found == outer_rank ? static_cast<rank_t>(found - members.begin()) : no_rank;
    }

    /// A list of outer ranks, in memory that a later list of any activity reuses.
    class translation {
      public:
        translation(const subgroup_members& of, std::span<const rank_t> inner)
            : of_(of), ranks_(of.spare_.exchange(nullptr)) {
            if (ranks_ == nullptr) ranks_ = new std::vector<rank_t>;
            ranks_->clear();
            for (const rank_t rank : inner) ranks_->push_back(of.outer(rank));
        }
        translation(const translation&) = delete;
        translation& operator=(const translation&) = delete;
        ~translation() { delete of_.spare_.exchange(ranks_); }

        std::span<const rank_t> ranks() const { return *ranks_; }

      private:
        const subgroup_members& of_;
        std::vector<rank_t>* ranks_;
    };
    translation outer(std::span<const rank_t> inner) const { return {*this, inner}; }

  private:
    void check([[maybe_unused]] int parent_size) const {
        for (rank_t i = 0; i < size(); ++i) {
            [[maybe_unused]] const rank_t member = outer(i);
            RILL_EXPECTS(0 <= member && member < parent_size,
                         ("subgroup: member " + std::to_string(member) + " is no rank of the parent, which has " +
                          std::to_string(parent_size))
                             .c_str());
            RILL_EXPECTS(i == 0 || outer(i - 1) < member,
                         ("subgroup: rank " + std::to_string(member) + " is not above the member before it").c_str());
        }
    }

    rill::view view_;
    rank_t self_;
    mutable std::atomic<std::vector<rank_t>*> spare_{nullptr};
};

}}}  // namespace rill::RILL_ABI::detail
