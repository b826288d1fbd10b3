#pragma once

#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream.hpp>

#include <cstddef>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A sparse result whose pieces are written where they belong as they arrive. A piece has its place once it is known of
/// every part how many entries it has.
template <Element T, IndexType Index>
class early_result {
  public:
    /// `parts` 0: the result is not wanted early, and what is told is ignored.
    void begin(std::size_t parts) {
        parts_.assign(parts, {});
        untold_ = parts;
        has_room_ = false;
    }
    bool is_wanted() const { return !parts_.empty(); }
    void give_up() { parts_.clear(); }

    /// Counts the next piece of a part, and returns how many entries of the part precede it.
    std::size_t count(std::size_t index, std::size_t entries) {
        if (!is_wanted()) return 0;
        return std::exchange(parts_[index].counted, parts_[index].counted + entries);
    }
    std::size_t counted(std::size_t index) const { return is_wanted() ? parts_[index].counted : 0; }

    /// Says how many entries a part has in all. False if another number has been told or more have been counted.
    bool tell(std::size_t index, std::size_t entries) {
        if (!is_wanted()) return true;
        part& of = parts_[index];
        if (!of.is_known)
            --untold_;
        else if (of.total != entries)
            return false;
        of.is_known = true;
        of.total = entries;
        return of.counted <= entries;
    }
    bool knows(std::size_t index) const { return parts_[index].is_known; }
    bool exceeds_total(std::size_t index) const {
        return is_wanted() && parts_[index].is_known && parts_[index].counted > parts_[index].total;
    }

    bool has_room() const { return has_room_; }
    /// Makes room for the result, which covers `range`, if the totals of all parts are known.
    bool make_room(segment range) {
        if (!is_wanted() || untold_ != 0) return false;
        if (has_room_) return true;
        std::size_t sum = 0;
        for (part& each : parts_) {
            each.first = sum;
            sum += each.total;
        }
        room_ = result_.make_sparse(range, sum);
        unwritten_ = sum;
        return has_room_ = true;
    }
    /// The place of a piece, to be written at once: `before` as returned when it was counted.
    stream_room<T, Index> place(std::size_t index, std::size_t before, std::size_t entries) {
        const std::size_t at = parts_[index].first + before;
        unwritten_ -= entries;
        return {room_.indices.subspan(at, entries), room_.values.subspan(at, entries)};
    }

    /// Exchanges the result with `output` if all of it has been written.
    bool take(stream<T, Index>& output) {
        if (!is_wanted() || !has_room_ || unwritten_ != 0) return false;
        std::swap(result_, output);
        return true;
    }

  private:
    struct part {
        std::size_t counted = 0;
        std::size_t total = 0;
        std::size_t first = 0;  ///< entry of the result
        bool is_known = false;
    };

    plain_vector<part> parts_;
    std::size_t untold_ = 0;     ///< parts
    std::size_t unwritten_ = 0;  ///< entries
    bool has_room_ = false;
    stream<T, Index> result_;
    stream_room<T, Index> room_{};
};

}}}  // namespace rill::RILL_ABI::detail
