#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/trace_log.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The tracks of one activity. An event goes on the first track where it nests.
class activity_tracks {
  public:
    explicit activity_tracks(const void* of) : of_(of) {}

    const void* of() const { return of_; }
    std::size_t count() const { return open_until_.size(); }

    /// Returns the track of an event. Events must come in the order of their begin, the longer first on a tie.
    std::size_t place(const trace_event& event) {
        std::size_t track = 0;
        for (; track < count(); ++track) {
            std::vector<time_point>& around = open_until_[track];
            while (!around.empty() && around.back() <= event.begin) around.pop_back();
            if (around.empty() || event.end <= around.back()) break;
        }
        if (track == count()) open_until_.emplace_back();
        open_until_[track].push_back(event.end);
        return track;
    }

  private:
    const void* of_;
    std::vector<std::vector<time_point>> open_until_;  ///< per track, the ends of the events that are still open
};

/// The track of each event. Tracks of one activity are adjacent; activities come in the order of their first events.
inline std::vector<int> tracks_of(std::span<const trace_event> events) {
    std::vector<std::size_t> order(events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const trace_event &x = events[a], &y = events[b];
        return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    std::vector<activity_tracks> activities;
    std::vector<std::size_t> owner(events.size()), track(events.size());
    for (const std::size_t i : order) {
        const auto own = std::find_if(activities.begin(), activities.end(),
                                      [&](const activity_tracks& each) { return each.of() == events[i].activity; });
        owner[i] = static_cast<std::size_t>(own - activities.begin());
        if (own == activities.end()) activities.emplace_back(events[i].activity);
        track[i] = activities[owner[i]].place(events[i]);
    }
    std::vector<std::size_t> before(activities.size() + 1);
    for (std::size_t a = 0; a < activities.size(); ++a) before[a + 1] = before[a] + activities[a].count();
    std::vector<int> tracks(events.size());
    for (std::size_t i = 0; i < tracks.size(); ++i) tracks[i] = static_cast<int>(before[owner[i]] + track[i]);
    return tracks;
}

}}}  // namespace rill::RILL_ABI::detail
