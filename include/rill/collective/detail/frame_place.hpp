#pragma once

#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Which part, or which rank's contribution, a frame carries. If the frame's range does not identify it, it is added to
/// `wire::header::call`. So the receiver notices if a message was lost or repeated and another one takes its place.
class frame_place {
  public:
    /// A part: identified by the frame's range, and by its number if that range is empty.
    static constexpr frame_place of_part(int part) { return {part, when::empty}; }
    /// A rank's contribution: identified by its number alone, because all frames cover the same range.
    static constexpr frame_place of_rank(rank_t rank) { return {rank, when::always}; }
    /// A later frame of a message: identified by its range; not checked if that is empty.
    static constexpr frame_place unknown() { return {0, when::never}; }

    /// The number of places that a call can tell apart; larger numbers wrap around.
    static constexpr std::uint32_t many = 1U << 16U;

    /// The value of `wire::header::call` for a frame over `range`; `call` is the hash of the call.
    constexpr std::uint32_t in(std::uint32_t call, segment range) const {
        return call + (counts_for(range) ? number_ % many : 0);
    }
    /// Whether a received frame is for this place; `call` is the hash of the call.
    constexpr bool is_place_of(const wire::header& head, std::uint32_t call) const {
        return in(call, head.range) == head.call || (when_ == when::never && head.range.empty());
    }
    constexpr std::uint32_t number() const { return number_; }

  private:
    enum class when : unsigned char { empty, always, never };

    constexpr frame_place(int number, when counts) : number_(static_cast<std::uint32_t>(number)), when_(counts) {}
    constexpr bool counts_for(segment range) const {
        return when_ == when::always || (when_ == when::empty && range.empty());
    }

    std::uint32_t number_;
    when when_;
};

}}}  // namespace rill::RILL_ABI::detail
