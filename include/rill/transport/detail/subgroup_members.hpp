#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

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
    subgroup_members(std::span<const rank_t> members, rank_t self, int parent_size)
        : outer_(members.begin(), members.end()), by_outer_(members.size()) {
        for (std::size_t i = 0; i < by_outer_.size(); ++i) by_outer_[i] = static_cast<rank_t>(i);
        std::sort(by_outer_.begin(), by_outer_.end(), [this](rank_t a, rank_t b) { return outer(a) < outer(b); });
        check(parent_size);
        self_ = inner_or_none(self);
        RILL_EXPECTS(self_ != no_rank,
                     ("subgroup: rank " + std::to_string(self) + " is not among the members").c_str());
    }
    subgroup_members(const subgroup_members&) = delete;
    subgroup_members& operator=(const subgroup_members&) = delete;
    ~subgroup_members() { delete spare_.load(); }

    rank_t rank() const { return self_; }
    int size() const { return static_cast<int>(outer_.size()); }

    std::uint64_t fingerprint() const {
        std::uint64_t hash = 0x73756267726F7570;
        for (const rank_t member : outer_) hash = mix64(hash, static_cast<unsigned>(member));
        return hash;
    }

    rank_t outer(rank_t inner) const { return outer_[static_cast<std::size_t>(inner)]; }
    rank_t outer_or_none(rank_t inner) const { return 0 <= inner && inner < size() ? outer(inner) : no_rank; }
    rank_t inner_or_none(rank_t outer_rank) const {
        const auto found = std::lower_bound(by_outer_.begin(), by_outer_.end(), outer_rank,
                                            [this](rank_t inner, rank_t wanted) { return outer(inner) < wanted; });
        return found != by_outer_.end() && outer(*found) == outer_rank ? *found : no_rank;
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
        for (std::size_t i = 0; i < by_outer_.size(); ++i) {
            [[maybe_unused]] const rank_t member = outer(by_outer_[i]);
            RILL_EXPECTS(0 <= member && member < parent_size,
                         ("subgroup: member " + std::to_string(member) + " is no rank of the parent, which has " +
                          std::to_string(parent_size))
                             .c_str());
            RILL_EXPECTS(i == 0 || outer(by_outer_[i - 1]) != member,
                         ("subgroup: rank " + std::to_string(member) + " is a member twice").c_str());
        }
    }

    std::vector<rank_t> outer_;
    std::vector<rank_t> by_outer_;  ///< inner ranks, in ascending order of their outer ones
    rank_t self_ = no_rank;
    mutable std::atomic<std::vector<rank_t>*> spare_{nullptr};
};

}}}  // namespace rill::RILL_ABI::detail
