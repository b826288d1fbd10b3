// rill 0.1.0: <rill/transport/time_by_name.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_TIME_BY_NAME_HPP
#define RILL_SINGLE_TRANSPORT_TIME_BY_NAME_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/time_by_name.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/time_by_name.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#ifndef RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP
#define RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP

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

// ===== rill/transport/time_by_name.hpp

namespace rill::inline RILL_ABI {

/// How long, and how often, ranks did what bears one name.
struct named_time {
    std::string_view name;  ///< of the trace's events: lives as long as they do
    duration time{};        ///< without what was recorded inside under other entries
    std::size_t count = 0;
};

namespace detail {

/// The time of each event of one log without the events inside it, in the order of `events`.
inline std::vector<duration> own_times(std::span<const trace_event> events) {
    std::vector<std::size_t> order(events.size()), open;
    std::vector<duration> own(events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    // What lies inside another one ends, and is recorded, before it.
    const auto place = [&](std::size_t i) {
        return std::tuple(reinterpret_cast<std::uintptr_t>(events[i].activity), events[i].begin.ns, -events[i].end.ns,
                          order.size() - i);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    for (const std::size_t i : order) {
        const trace_event& event = events[i];
        const auto is_outside = [&](const trace_event& other) {
            return other.activity != event.activity || other.end.ns < event.end.ns;
        };
        while (!open.empty() && is_outside(events[open.back()])) open.pop_back();
        own[i] = event.end - event.begin;
        if (!open.empty()) own[open.back()] = own[open.back()] - own[i];
        open.push_back(i);
    }
    return own;
}

}  // namespace detail

/// Where the time of all ranks went: a row per name, the longest first. What activities of a rank do at once is counted
/// for each of them. Cost: a sort of each log.
inline std::vector<named_time> time_by_name(std::span<const trace_log> logs) {
    std::vector<named_time> rows;
    for (const trace_log& log : logs) {
        const std::vector<duration> own = detail::own_times(log.events());
        for (std::size_t i = 0; i < own.size(); ++i) {
            const std::string_view name = log.events()[i].name;
            auto row = std::find_if(rows.begin(), rows.end(), [&](const named_time& r) { return r.name == name; });
            if (row == rows.end()) row = rows.insert(rows.end(), {.name = name});
            row->time = row->time + own[i];
            ++row->count;
        }
    }
    std::sort(rows.begin(), rows.end(), [](const named_time& a, const named_time& b) {
        return std::tuple(b.time.ns, a.name) < std::tuple(a.time.ns, b.name);
    });
    return rows;
}

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_TIME_BY_NAME_HPP
