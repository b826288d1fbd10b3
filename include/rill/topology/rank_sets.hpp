#pragma once

#include <rill/core/types.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// A set of ranks as a bitmap of 64 ranks per word.
using rank_set = std::span<std::uint64_t>;
/// A read-only set. The sets of one operation have equally many words.
using rank_set_view = std::span<const std::uint64_t>;

/// Adds `rank`, which must be less than 64 times the number of words.
constexpr void insert(rank_set set, rank_t rank) {
    set[static_cast<std::size_t>(rank / 64)] |= std::uint64_t{1} << (rank % 64);
}

/// Whether `rank`, which must be less than 64 times the number of words, is a member.
constexpr bool contains(rank_set_view set, rank_t rank) {
    return ((set[static_cast<std::size_t>(rank / 64)] >> (rank % 64)) & 1) != 0;
}

/// Whether no rank is in both sets.
constexpr bool are_disjoint(rank_set_view a, rank_set_view b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((a[i] & b[i]) != 0) return false;
    return true;
}

/// Whether `more` holds all members of `less` and at least one other.
constexpr bool is_larger(rank_set_view more, rank_set_view less) {
    bool grew = false;
    for (std::size_t i = 0; i < more.size(); ++i) {
        if ((less[i] & ~more[i]) != 0) return false;
        grew = grew || more[i] != less[i];
    }
    return grew;
}

/// Whether both sets have the same members.
constexpr bool are_equal(rank_set_view a, rank_set_view b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] != b[i]) return false;
    return true;
}

/// Adds the members of `b` to `a`; returns false if that adds nothing.
constexpr bool join(rank_set a, rank_set_view b) {
    bool grew = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        grew = grew || (b[i] & ~a[i]) != 0;
        a[i] |= b[i];
    }
    return grew;
}

/// The smallest member of a set that is not empty.
constexpr rank_t smallest(rank_set_view set) {
    std::size_t i = 0;
    while (set[i] == 0) ++i;
    return static_cast<rank_t>(i) * 64 + std::countr_zero(set[i]);
}

/// The largest member of a set that is not empty.
constexpr rank_t largest(rank_set_view set) {
    std::size_t i = set.size() - 1;
    while (set[i] == 0) --i;
    return static_cast<rank_t>(i) * 64 + 63 - std::countl_zero(set[i]);
}

/// Many sets of ranks of a group of `size`, all empty at first.
///
/// It is a template because it must compile where `Words` is not usable in constant expressions, as std::vector is not
/// in libstdc++'s debug mode.
template <class Words>
class basic_rank_sets {
  public:
    constexpr basic_rank_sets() = default;
    constexpr basic_rank_sets(std::size_t count, int size)
        : words_(static_cast<std::size_t>(size + 63) / 64), bits_(count * words_, std::uint64_t{0}) {}

    constexpr rank_set operator[](std::size_t i) { return {bits_.data() + i * words_, words_}; }
    constexpr rank_set_view operator[](std::size_t i) const { return {bits_.data() + i * words_, words_}; }

    constexpr std::size_t count() const { return bits_.size() / words_; }
    constexpr void clear() { bits_.clear(); }
    constexpr void push(rank_set_view set) {
        for (std::uint64_t word : set) bits_.push_back(word);
    }

  private:
    std::size_t words_ = 1;
    Words bits_{};
};

/// Sets of ranks in memory of the heap.
using rank_sets = basic_rank_sets<std::vector<std::uint64_t>>;

}}}  // namespace rill::RILL_ABI::topology
