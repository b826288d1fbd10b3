// rill 0.1.0: <rill/transport/trace_log.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP
#define RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/trace_log.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/trace_log.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// ===== rill/transport/trace_log.hpp

namespace rill::inline RILL_ABI {

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
    const void* activity = nullptr;  ///< which one of its rank, where the transport tells
};

/// What one rank did, in the order in which it ended. Its memory is allocated and touched beforehand; what does not fit
/// is counted and dropped. Several activities may record at once; read it when they have ended.
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

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP
