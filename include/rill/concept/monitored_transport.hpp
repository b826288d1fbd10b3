#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// A transport that tells what becomes of its ranks, for protocols that go on without some.
///
/// `size()` is the number of seats. A seat is free until a rank takes it; a rank that begins anew takes its own seat
/// again, in another incarnation. What is sent to a free seat is lost.
///
/// - `incarnation(peer)`: a number that differs for each life of a seat; 0 for a seat that nobody has taken yet. On a
///   rank that monitors, it follows what has been told.
/// - `monitor(on)`: from then on, what becomes of a peer is a message of that peer on `on`, to be read by
///   `read_peer_event`: its end, its arrival, and where the transport notices them, silence and recovery. The end of a
///   life arrives after all else that this life has sent to this rank on any channel, and before anything of the next
///   life; an arrival comes before all else of its life. The end of a peer that has ended before is told at once. Who
///   sits when this rank begins to monitor is not told to have arrived. Several channels may be monitored: each is told
///   all. Closing the context of a channel ends its monitoring.
/// - `fence(peer, incarnation)`: nothing of that life arrives any more on any channel, also what is under way or in the
///   mailbox: neither messages nor its end.
/// - On any other channel of the context of a monitored one, a receive that finds nothing and waits for peers of which
///   each is fenced, or has been told to have ended or to be silent, throws `peer_failure`, also with a deadline. It
///   names the first as the culprit and all in its text, and comes at the latest when the last of these news arrives.
///   If one of them is silent, and may be heard again, it names this rank as the other end. So does a wait until a peer
///   has read a message, which ends where the peer is silent. On a monitored channel a receive waits: a rank may
///   arrive.
/// - An exception that leaves a body ends that rank only, for those that have monitored a channel by then. To them it
///   is the end of that peer, as if it had been killed. In their other contexts a receive that finds nothing and waits
///   for peers whose bodies have all thrown throws the notice of the first of them, with the context of the wait. An
///   abort of every context ends none of these ranks. A rank that begins to monitor after such an abort goes on too.
///
/// Other contexts are as before: a closed protocol does not monitor, waits for its deadline, and finds who is to blame
/// by `inquire`, which answers by `operation::departure` where a body has returned or thrown.
template <class N>
concept MonitoredTransport =
    Transport<N> && requires(N& net, const N& constant, rank_t peer, channel on, std::uint64_t incarnation) {
        { constant.incarnation(peer) } -> std::same_as<std::uint64_t>;
        { net.monitor(on) };
        { net.fence(peer, incarnation) };
    };

}}  // namespace rill::RILL_ABI
