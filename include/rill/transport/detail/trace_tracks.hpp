#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/trace_log.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rill::inline RILL_ABI::detail {

/// A track for each event, such that those on one track nest: the first where it fits.
inline std::vector<int> tracks_of(std::span<const trace_event> events) {
    std::vector<std::size_t> order(events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const trace_event &x = events[a], &y = events[b];
        return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    std::vector<std::vector<time_point>> open_until;  // of the events around, per track
    std::vector<int> tracks(events.size());
    for (const std::size_t i : order) {
        std::size_t track = 0;
        for (; track < open_until.size(); ++track) {
            std::vector<time_point>& around = open_until[track];
            while (!around.empty() && around.back() <= events[i].begin) around.pop_back();
            if (around.empty() || events[i].end <= around.back()) break;
        }
        if (track == open_until.size()) open_until.emplace_back();
        open_until[track].push_back(events[i].end);
        tracks[i] = static_cast<int>(track);
    }
    return tracks;
}

}  // namespace rill::inline RILL_ABI::detail
