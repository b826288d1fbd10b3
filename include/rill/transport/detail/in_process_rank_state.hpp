#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/call_table.hpp>
#include <rill/transport/detail/in_process_bell.hpp>
#include <rill/transport/detail/in_process_mailbox.hpp>
#include <rill/transport/detail/lookout.hpp>
#include <rill/transport/detail/traffic_counter.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

using rill::detail::call_table;
using rill::detail::lookout;

/// The state of one rank that other ranks access.
struct alignas(64) rank_state {
    [[gnu::noinline]] explicit rank_state(int ranks) : box(ranks), watch(ranks) {}

    std::mutex mutex;  ///< guards box, calls, watch, is_free and awaiting_room; bells may be rung while it is held
    mailbox box;
    call_table calls;
    lookout watch;
    bool is_free = true;  ///< nothing is sent to a free seat
    plain_vector<rank_t> awaiting_room;
    class bells bells;
    std::atomic<std::uint64_t> incarnation{0};  ///< 0: the seat is free
    std::atomic_flag monitors{};                ///< it has asked what becomes of others, and goes on without them
    std::atomic_flag has_ended{};               ///< its body has returned or thrown
    std::optional<abort_notice> failure{};      ///< what its body has thrown, once it has ended
    alignas(64) rill::detail::traffic_counter messages{};
    std::atomic<std::uint64_t> accesses{0}, bytes_accessed{0};  ///< without messages, in either direction
};

/// Keeps a sender on the list of those to wake when the mailbox has room.
class room_request {
  public:
    [[gnu::noinline]] room_request(rank_state& target, rank_t sender) : target_(target), sender_(sender) {
        const std::lock_guard lock(target_.mutex);
        target_.awaiting_room.add(sender_);
    }
    room_request(const room_request&) = delete;
    room_request& operator=(const room_request&) = delete;
    [[gnu::noinline]] ~room_request() {
        const std::lock_guard lock(target_.mutex);
        auto& all = target_.awaiting_room;
        std::size_t own = 0;
        while (all[own] != sender_) ++own;
        all[own] = all.back();  // their order does not matter
        all.pop_back();
    }

  private:
    rank_state& target_;
    rank_t sender_;
};

}}}  // namespace rill::RILL_ABI::in_process::detail
