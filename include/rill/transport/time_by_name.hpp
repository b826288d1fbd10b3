#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/trace_log.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The total time and the number of the events with one name.
struct named_time {
    std::string_view name;  ///< of the trace's events; valid as long as they are
    duration time{};        ///< without the events recorded inside these
    std::size_t count = 0;
};

namespace detail {

/// The time of each event without the events inside it, for one log, in the order of `events`.
inline std::vector<duration> own_times(std::span<const trace_event> events) {
    std::vector<std::size_t> order(events.size()), open;
    std::vector<duration> own(events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    // An inner event ends, and is recorded, before the one around it.
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

/// Sums up the time of all ranks by the names of events, longest first. Concurrent activities of a rank each count in
/// full. Cost: a sort of each log.
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

}}  // namespace rill::RILL_ABI
