#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/any_model.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/control_plane.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace simulated {

using rill::control_plane;

/// Describes the network and the machines of a run: a directed link between every two ranks, and a card at each rank. A
/// message of n bytes starts when its link and its sender's card are free, occupies them for n / bandwidth, and arrives
/// `latency` later (the α-β model), or when the receiver's card has received all of it. A link keeps messages in order.
struct network {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;  ///< bytes per second of each directed link; 0: without limit
    /// Any `LinkModel`, or none. Where it is set, it replaces `latency` and `bandwidth`.
    any_model<network_link(rank_t source, rank_t receiver)> links{};
    /// Whether the two directions between two ranks share one line, which one message at a time occupies.
    bool half_duplex = false;
    /// Any `CardModel`, or none. Without it the ranks' cards limit nothing.
    any_model<network_card(rank_t)> cards{};
    /// Any `ComputeModel`, or none. It says how long `compute` takes; without it, no time.
    compute_model computing{};
    /// The faults of the run; they may name only ranks of the run.
    fault_plan faults{};
    /// The places for ranks, if there are more than ranks: free until `faults::start` lets a rank take one.
    int seats = 0;
    /// Travelling control takes the latency of its link and no bandwidth. Faults delay and lose it; what is lost is
    /// sent again, first after `1 ms` or four latencies, then after twice as long each time, up to 1 s; and is given up
    /// after about a minute. So loss delays control, and a cut stops it.
    ///
    /// A notice goes straight from the rank that issues it to every other rank. On each rank the first that reaches it
    /// wins, its own included: notices that race can win on different ranks. `inquire` asks the peer and waits for its
    /// answer; with `deadline::immediate` it returns what answers to earlier inquiries have said. A rank on which the
    /// call has ended answers with the notice that has ended it.
    control_plane control = control_plane::travelling;
    /// A rank that monitors is told that a peer is silent when control of that peer has been lost for so long, and that
    /// it has recovered when anything of it arrives again. Ranks give signs of life when a link is cut.
    duration silence = seconds(3);
    duration jitter{};                                  ///< adds to each message's latency, uniform in [0, jitter]
    std::uint64_t seed = 0;                             ///< of the jitter
    std::size_t mailbox_bytes = std::size_t{64} << 20;  ///< bound of bytes handed over to a rank and not received
    duration poll = nanoseconds(100);                   ///< time of a poll that finds nothing, so that loops advance
    /// Of each activity, reserved but not touched. A thread keeps 256 stacks, up to 128 MiB, for its next runs.
    std::size_t stack_bytes = std::size_t{512} << 10;
    /// A run that takes longer than this ends with `deadlock`, so that tests detect endless runs. 0: no bound.
    duration longest{};

    friend bool operator==(const network&, const network&) = default;

    network_link link_of(rank_t source, rank_t receiver) const {
        return links ? links(source, receiver) : network_link{latency, bandwidth};
    }
    double share_of_line() const { return half_duplex ? 1 : 0; }
    network_card card_of(rank_t rank) const { return cards ? cards(rank) : network_card{}; }

    /// The time that the jitter adds to message `number` of a link.
    duration extra(rank_t source, rank_t receiver, std::uint64_t number) const {
        if (jitter.ns <= 0) return {};
        const random_key link = random_key{seed}.derive(static_cast<unsigned>(source), static_cast<unsigned>(receiver));
        random_sequence of_message(link.derive(number));
        return duration(static_cast<std::int64_t>(of_message.below(static_cast<std::uint64_t>(jitter.ns) + 1)));
    }
};

}}}  // namespace rill::RILL_ABI::simulated
