#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What travels behind the bytes of a message: when it is due, and the incarnation of its sender, 0 where the inner
/// transport knows none.
struct stamped {
    time_point due{};
    std::uint64_t life = 0;
};
inline constexpr std::size_t stamp_bytes = 2 * sizeof(std::uint64_t);

/// Set in each stamp, so that none is taken for a `peer_event`, which has no stamp.
inline constexpr std::uint64_t stamp_mark = std::uint64_t{1} << 63U;

inline void write_stamp(std::byte* to, const stamped& what) {
    const std::uint64_t words[] = {static_cast<std::uint64_t>(what.due.ns) | stamp_mark, what.life};
    std::memcpy(to, words, stamp_bytes);
}

/// The stamp of a borrowed message. Its address is fixed until it is given back.
struct stamp {
    std::byte bytes[stamp_bytes];
    buffer joined{};  ///< the caller's last piece and `bytes`, where a message has no room for one more piece
};

/// The stamps of messages under way. Allocates only while more are in use than ever before.
class stamp_pool {
  public:
    /// Returns a stamp, and the non-empty `pieces` followed by that stamp.
    std::pair<stamp*, byte_pieces> put_behind(const byte_pieces& pieces, const stamped& what) {
        stamp* const taken = take();
        write_stamp(taken->bytes, what);
        byte_pieces all;
        for (const byte_view piece : pieces) {
            if (piece.empty()) continue;
            if (all.count() + 1 == byte_pieces::most) return {taken, join(all, piece, *taken)};
            all.push(piece);
        }
        all.push(taken->bytes);
        return {taken, all};
    }

    void give_back(stamp* unused) noexcept {
        const std::lock_guard lock(mutex_);
        unused_.push_back(unused);  // has room for all
    }

  private:
    static byte_pieces join(byte_pieces before, byte_view last, stamp& own) {
        own.joined.assign(last.begin(), last.end());
        own.joined.append(own.bytes, own.bytes + stamp_bytes);
        before.push(own.joined);
        return before;
    }

    stamp* take() {
        const std::lock_guard lock(mutex_);
        if (unused_.empty()) {
            if (unused_.capacity() <= stamps_.size()) unused_.reserve(2 * stamps_.size() + 16);
            return &stamps_.emplace_back();
        }
        stamp* const taken = unused_.back();
        unused_.pop_back();
        return taken;
    }

    std::mutex mutex_;
    std::deque<stamp> stamps_;
    std::vector<stamp*> unused_;
};

/// A received message: its stamp, and the caller's bytes without it. Without a stamp, `is_stamped` is false.
struct unstamped {
    bool is_stamped = false;
    stamped stamp{};
    byte_pieces pieces{};
};

/// Separates the stamp from a message. The stamp is the last `stamp_bytes` bytes, in whatever pieces they lie: the
/// inner transport may have joined or split pieces.
inline unstamped take_stamp(const byte_pieces& received) {
    const std::size_t size = received.size_bytes();
    unstamped result;
    if (size < stamp_bytes) return result;
    std::byte bytes[stamp_bytes];
    std::size_t payload = size - stamp_bytes, read = 0;
    for (const byte_view piece : received) {
        const std::size_t kept = std::min(payload, piece.size());
        if (kept > 0) result.pieces.push(piece.first(kept));
        payload -= kept;
        const byte_view rest = piece.subspan(kept);
        std::copy(rest.begin(), rest.end(), bytes + read);
        read += rest.size();
    }
    std::uint64_t words[2];
    std::memcpy(words, bytes, stamp_bytes);
    result.is_stamped = (words[0] & stamp_mark) != 0;
    result.stamp = {{static_cast<std::int64_t>(words[0] & ~stamp_mark)}, words[1]};
    return result;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_unstamped(std::size_t size, rank_t source, rank_t self) {
    throw protocol_error(text_of({"rank ", self, " received ", size, " bytes from rank ", source,
                                  ", without the time stamp of a delayed transport: it is delayed on all ranks or on "
                                  "none"}));
}

}}}  // namespace rill::RILL_ABI::detail
