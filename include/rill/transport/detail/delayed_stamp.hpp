#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The size of a stamp: the instant at which a message is due, which travels behind its bytes.
inline constexpr std::size_t stamp_bytes = sizeof(time_point::ns);

/// The stamp of a borrowed message. Its address is fixed until it is given back.
struct stamp {
    std::byte due[stamp_bytes];
    buffer joined{};  ///< the caller's last piece and `due`, where a message has no room for one more piece
};

/// The stamps of messages under way. Allocates only while more are in use than ever before.
class stamp_pool {
  public:
    /// Returns a stamp, and the non-empty `pieces` followed by that stamp.
    std::pair<stamp*, byte_pieces> put_behind(const byte_pieces& pieces, time_point due) {
        stamp* const taken = take();
        std::memcpy(taken->due, &due.ns, stamp_bytes);
        byte_pieces stamped;
        for (const byte_view piece : pieces) {
            if (piece.empty()) continue;
            if (stamped.count() + 1 == byte_pieces::most) return {taken, join(stamped, piece, *taken)};
            stamped.push(piece);
        }
        stamped.push(taken->due);
        return {taken, stamped};
    }

    void give_back(stamp* unused) noexcept {
        const std::lock_guard lock(mutex_);
        unused_.push_back(unused);  // has room for all
    }

  private:
    static byte_pieces join(byte_pieces stamped, byte_view last, stamp& own) {
        own.joined.assign(last.begin(), last.end());
        own.joined.insert(own.joined.end(), own.due, own.due + stamp_bytes);
        stamped.push(own.joined);
        return stamped;
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

/// A received message: when it is due, and the caller's bytes without the stamp.
struct unstamped {
    time_point due{};
    byte_pieces pieces{};
};

/// Separates the stamp from a message. The stamp is the last `stamp_bytes` bytes, in whatever pieces they lie: the
/// inner transport may have joined or split pieces.
inline unstamped take_stamp(const byte_pieces& received, rank_t source, rank_t self) {
    const std::size_t size = received.size_bytes();
    if (size < stamp_bytes)
        throw protocol_error(
            "rank " + std::to_string(self) + " received " + std::to_string(size) + " bytes from rank " +
            std::to_string(source) +
            ", less than the time stamp of a delayed transport: it is delayed on all ranks or on none");
    std::byte due[stamp_bytes];
    std::size_t payload = size - stamp_bytes, read = 0;
    unstamped result;
    for (const byte_view piece : received) {
        const std::size_t kept = std::min(payload, piece.size());
        if (kept > 0) result.pieces.push(piece.first(kept));
        payload -= kept;
        const byte_view rest = piece.subspan(kept);
        std::copy(rest.begin(), rest.end(), due + read);
        read += rest.size();
    }
    std::memcpy(&result.due.ns, due, stamp_bytes);
    return result;
}

}}}  // namespace rill::RILL_ABI::detail
