#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// The data of one rank that `execute` runs a schedule on, over the transport `Net`.
///
/// - `outgoing(parts, kind)` returns the pieces of a message, whose memory stays valid until the exchange finishes.
/// - `fold(arrivals)` takes arrivals that all bring the same parts, `copy(arrivals)` all arrivals of a round, both in
///   ascending order of the peers. The state may keep the messages.
/// - `overwrites_nothing`: it leaves what it sends unchanged until the end, so that no time is spent on finding out
///   what has been read.
template <class S, class Net>
concept ScheduleState = Transport<Net> && requires(S& state, part_range parts, action kind,
                                                   std::span<arrival<typename Net::message>> arrivals) {
    { S::overwrites_nothing } -> std::convertible_to<bool>;
    { state.outgoing(parts, kind) } -> std::same_as<byte_pieces>;
    { state.fold(arrivals) };
    { state.copy(arrivals) };
};

/// A state that decides how many messages bring the parts of a chunked schedule: one message may bring several chunks
/// of a part, and then those that are scheduled for the others are not sent.
///
/// - `outgoing` returns no pieces where nothing is to be sent. `awaits(from)`: whether a message is still to come.
/// - `may_send(parts, kind)`: whether a round that sends these parts may be posted ahead of its turn.
/// - `fold` and `copy` take each message as soon as it is here. `close(parts)` ends a fold round for these parts.
template <class S, class Net>
concept CuttingState =
    ScheduleState<S, Net> && requires(S& state, const transfer& from, part_range parts, action kind) {
        { state.may_send(parts, kind) } -> std::same_as<bool>;
        { state.awaits(from) } -> std::same_as<bool>;
        { state.close(parts) };
    };

/// A state that can receive finished parts where they belong.
///
/// - `place_for(parts)` returns that memory, for a whole message, or nothing; it stays valid until the next call.
/// - `has_free_place(parts)`: whether nobody reads it; `await_place(parts)` waits until then.
template <class S, class Net>
concept PlacingState = ScheduleState<S, Net> && requires(S& state, part_range parts) {
    { state.place_for(parts) } -> std::same_as<std::span<const byte_span>>;
    { state.has_free_place(parts) } -> std::same_as<bool>;
    { state.await_place(parts) };
};

}}  // namespace rill::RILL_ABI
