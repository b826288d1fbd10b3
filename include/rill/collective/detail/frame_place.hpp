#pragma once

#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Which part, or whose contribution, a frame is of. It is added to `wire::header::call` where the range does not say
/// it: so a message is noticed that takes the place of another, because that was lost or one came twice.
class frame_place {
  public:
    /// Told by the range, unless that is empty.
    static constexpr frame_place of_part(int part) { return {part, when::empty}; }
    /// Told by nothing else: all frames cover the same range.
    static constexpr frame_place of_rank(rank_t rank) { return {rank, when::always}; }
    /// Of an empty frame behind others, which has no place of its own.
    static constexpr frame_place unknown() { return {0, when::never}; }

    /// Of the places of one call; further ones begin again.
    static constexpr std::uint32_t many = 1U << 16U;

    /// `call` of a frame over that range.
    constexpr std::uint32_t in(std::uint32_t call, segment range) const {
        return call + (counts_for(range) ? number_ % many : 0);
    }
    /// Whether a frame of `call` that has been received is of this place.
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
