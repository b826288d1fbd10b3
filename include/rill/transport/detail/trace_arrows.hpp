#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/trace_log.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// One end of a message in a trace.
struct arrow_end {
    rank_t source = no_rank;
    rank_t receiver = no_rank;
    channel on{};
    int track = 0;
    const trace_event* event = nullptr;

    std::strong_ordering compare(const arrow_end& other) const {
        if (const auto by = source <=> other.source; by != 0) return by;
        if (const auto by = receiver <=> other.receiver; by != 0) return by;
        return on <=> other.on;
    }
};
using arrow_ends = std::vector<arrow_end>;

inline void note_arrow_end(arrow_ends& posts, arrow_ends& receives, rank_t rank, int track, const trace_event& event) {
    using enum trace_event::what;
    if (event.kind == post) posts.push_back({rank, event.peer, event.on, track, &event});
    if (event.kind == receive || event.kind == receive_latest)
        receives.push_back({event.peer, rank, event.on, track, &event});
}

/// The end of the entries, from `first` on, that have the sender, receiver and channel of entry `first`.
inline std::size_t end_of_lane(const arrow_ends& ends, std::size_t first) {
    std::size_t i = first;
    while (i < ends.size() && ends[i].compare(ends[first]) == 0) ++i;
    return i;
}

/// Pairs the posts and receives of each sender, receiver and channel, in order.
template <class Visit>
void for_each_arrow(arrow_ends& posts, arrow_ends& receives, Visit&& visit) {
    const auto by_lane = [](const arrow_end& a, const arrow_end& b) { return a.compare(b) < 0; };
    std::stable_sort(posts.begin(), posts.end(), by_lane);
    std::stable_sort(receives.begin(), receives.end(), by_lane);
    for (std::size_t p = 0, r = 0; p < posts.size() && r < receives.size();) {
        const auto order = posts[p].compare(receives[r]);
        const std::size_t p_end = end_of_lane(posts, p), r_end = end_of_lane(receives, r);
        if (order == 0) {
            const bool skips =
                std::any_of(receives.begin() + static_cast<std::ptrdiff_t>(r),
                            receives.begin() + static_cast<std::ptrdiff_t>(r_end),
                            [](const arrow_end& end) { return end.event->kind == trace_event::what::receive_latest; });
            for (std::size_t i = 0; !skips && i < std::min(p_end - p, r_end - r); ++i)
                visit(posts[p + i], receives[r + i]);
        }
        if (order <= 0) p = p_end;
        if (order >= 0) r = r_end;
    }
}

}}}  // namespace rill::RILL_ABI::detail
