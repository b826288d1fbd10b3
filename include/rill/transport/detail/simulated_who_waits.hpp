#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>

#include <cstddef>
#include <deque>
#include <span>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

inline std::string ranks_text(std::span<const rank_t> ranks) {
    constexpr std::size_t shown = 8;
    std::string text = ranks.size() == 1 ? "rank " : "any of ranks ";
    for (std::size_t i = 0; i < ranks.size() && i < shown; ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(ranks[i]);
    }
    if (ranks.size() > shown) text += ", … (" + std::to_string(ranks.size()) + " ranks)";
    return text;
}

inline std::string channel_text(channel on) {
    return " (context " + std::to_string(on.context) + ", tag " + std::to_string(on.tag) + ")";
}

/// Says what an activity waits for: "rank 0 waits for a message from rank 1 (context 0, tag 7)".
inline std::string wait_text(rank_t rank, const wait_record& what) {
    const std::string who = "rank " + std::to_string(rank) + " waits for ";
    switch (what.kind) {
        case waits_for::message: return who + "a message from " + ranks_text(what.peers) + channel_text(what.on);
        case waits_for::room:
            return who + "room for " + std::to_string(what.amount) + " bytes in the mailbox of " +
                   ranks_text(what.peers) + channel_text(what.on);
        case waits_for::reading:
            return who + ranks_text(what.peers) + " to receive and release its message" + channel_text(what.on);
        case waits_for::announcement:
            return who + ranks_text(what.peers) + " to enter call " + std::to_string(what.amount) + " (context " +
                   std::to_string(what.on.context) + ")";
        case waits_for::event: return who + "an event";
        case waits_for::queue: return who + "a queue";
        case waits_for::activity: return who + "one of its activities to end";
        case waits_for::time: break;
    }
    return who + "a time that is never reached";
}

/// Lists the waits of all activities.
inline std::string who_waits(const std::deque<strand>& strands) {
    constexpr std::size_t shown = 32;
    std::string text;
    std::size_t count = 0;
    for (const strand& each : strands) {
        if (each.waiting == nullptr || ++count > shown) continue;
        if (count > 1) text += "; ";
        text += wait_text(each.rank, *each.waiting);
    }
    if (count > shown) text += "; and " + std::to_string(count - shown) + " more";
    return text;
}

}}}  // namespace rill::RILL_ABI::simulated::detail
