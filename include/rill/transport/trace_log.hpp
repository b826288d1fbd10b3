#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Something that took time on one rank.
struct trace_event {
    enum class what : std::uint8_t { post, receive, receive_latest, wait, span };

    time_point begin{};
    time_point end{};
    const char* name = "";  ///< lives as long as the log
    what kind = what::span;
    rank_t peer = no_rank;
    channel on{};
    std::uint64_t bytes = 0;
    const void* activity = nullptr;  ///< identifies the activity within its rank, where the transport says so
};

/// The events of one rank, in the order in which they ended. All memory is allocated and touched at construction;
/// events that do not fit are counted and dropped. Several activities may record at once; read the log only when they
/// have ended.
class trace_log {
  public:
    /// Memory: 64 bytes for each event.
    explicit trace_log(std::size_t capacity = std::size_t{1} << 16) : events_(capacity) {}

    void record(const trace_event& event) noexcept {
        const std::size_t place = recorded_.fetch_add(1, std::memory_order_relaxed);
        if (place < events_.size()) events_[place] = event;
    }

    std::span<const trace_event> events() const { return std::span(events_).first(std::min(events_.size(), asked())); }
    std::size_t dropped() const { return asked() - events().size(); }
    void clear() { recorded_.store(0, std::memory_order_relaxed); }

    rank_t rank() const { return rank_; }
    void set_rank(rank_t rank) { rank_ = rank; }

  private:
    std::size_t asked() const { return recorded_.load(std::memory_order_relaxed); }

    std::vector<trace_event> events_;
    std::atomic<std::size_t> recorded_{0};
    rank_t rank_ = 0;
};

}}  // namespace rill::RILL_ABI
