#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/any_model.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// What the ranks are connected by: a directed link between every two of them, and a card at each. A message of n bytes
/// starts when its link and its sender's card are free, occupies them for n / bandwidth, and arrives `latency` later
/// (the α-β model), or when the receiver's card has taken it whole; a link keeps the order.
struct network {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;  ///< bytes per second of each directed link; 0: without limit
    /// Says otherwise for each link; any `LinkModel`. Then `latency` and `bandwidth` are not looked at.
    any_model<network_link(rank_t source, rank_t receiver)> links{};
    /// What the ranks' cards limit besides; any `CardModel`. Without it: nothing.
    any_model<network_card(rank_t)> cards{};
    /// How long `compute` takes; any `ComputeModel`. Without it: no time.
    compute_model computing{};
    /// What goes wrong; its ranks must be there.
    fault_plan faults{};
    duration jitter{};                                  ///< adds to each message's latency, uniform in [0, jitter]
    std::uint64_t seed = 0;                             ///< of the jitter
    std::size_t mailbox_bytes = std::size_t{64} << 20;  ///< bound of what a rank has been handed and not received
    duration poll = nanoseconds(100);  ///< what looking in vain costs, so that a loop that only looks gets on
    std::size_t stack_bytes = std::size_t{512} << 10;  ///< of each activity, reserved but not touched
    /// A run that goes on longer than this ends like a deadlock: how a test tells one that never ends. 0: no bound.
    duration longest{};

    friend bool operator==(const network&, const network&) = default;

    network_link link_of(rank_t source, rank_t receiver) const {
        return links ? links(source, receiver) : network_link{latency, bandwidth};
    }
    network_card card_of(rank_t rank) const { return cards ? cards(rank) : network_card{}; }

    /// What the jitter adds to message `number` of a link.
    duration extra(rank_t source, rank_t receiver, std::uint64_t number) const {
        if (jitter.ns <= 0) return {};
        const random_key link = random_key{seed}.derive(static_cast<unsigned>(source), static_cast<unsigned>(receiver));
        random_sequence of_message(link.derive(number));
        return duration(static_cast<std::int64_t>(of_message.below(static_cast<std::uint64_t>(jitter.ns) + 1)));
    }
};

}}}  // namespace rill::RILL_ABI::simulated
