#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/delays.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The one link over which a rank sends. Messages occupy it one after the other, in the order of `reserve`.
class delayed_link {
  public:
    explicit delayed_link(const delays& chosen) : chosen_(chosen) {}

    const delays& chosen() const { return chosen_; }

    /// When a message begins and ends to occupy the link, and when it is due.
    struct slot {
        time_point start{}, end{}, due{};
    };

    slot reserve(time_point now, std::size_t bytes) {
        const duration length = chosen_.transfer(bytes);
        std::int64_t free_at = free_at_.load(std::memory_order_relaxed);
        time_point start, end;
        do {
            start = std::max(now, time_point{free_at});
            end = start + length;
        } while (!free_at_.compare_exchange_weak(free_at, end.ns, std::memory_order_relaxed));
        return {start, end, end + chosen_.latency};
    }

    /// Frees the slot of a message that was not sent after all, unless another message has reserved the link since.
    void give_back(const slot& unused) {
        std::int64_t free_at = unused.end.ns;
        free_at_.compare_exchange_strong(free_at, unused.start.ns, std::memory_order_relaxed);
    }

  private:
    delays chosen_;
    std::atomic<std::int64_t> free_at_{0};
};

}}}  // namespace rill::RILL_ABI::detail
