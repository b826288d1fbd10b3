#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

/// What a rank lets the others reach in one operation. How many elements lie there follows from the call.
struct exposure {
    call_signature call{};             ///< as this rank has made it
    std::array<std::byte, 16> note{};  ///< what the collective says to the others
    const std::byte* input = nullptr;  ///< they read it
    std::byte* output = nullptr;       ///< they write to it, unless the operation has none: then it may be anything
};

/// A transport whose ranks reach each other's memory: operations between them need no messages.
///
/// What the ranks of one context have in common is a *window*; `share(context)` gives each rank a handle to it, and
/// copies of the handle are for the rank's other activities. Operations are told apart by their numbers. A rank
/// begins none before it has left its own of `places` numbers before it, by whichever handle: the caller sees to that.
///
/// Laws (testing/transport_laws.hpp runs them over every model):
/// - `has_room(peer, number, until)` waits until `peer` has left the earlier operations whose place and whose slot this
///   one takes: one at least `places` before it, and one that this handle has ended. False when `until` has passed.
///   Once all have, `expose(what)` publishes, once, what this rank exposes in operation `what.call.number`. It is an
///   `announce` of that call too, and never waits.
/// - `exposed(peer, call, until)` waits for what `peer` exposes in that operation. Null when `until` has passed, or
///   when the peer has announced another call of that number, which `inquire` then tells.
/// - `enter(number)`, once this rank has seen what all expose in an operation: from now on it may read and write that.
///   False when one of them has withdrawn. `leave(number)` tells that it will do so no more; `abandon(number)`, that it
///   has failed. Who has only read slots need not enter, and leaves by `pass(number)`.
/// - `has_left(peer, number, until)` waits for that; then what the peer wrote is visible. False when `until` has
///   passed.
/// - `withdraw(number)` returns when no other rank is inside that operation, or ever will be, whatever has ended.
/// - `claim(peer, number)` counts from 0, among all ranks, in each operation that `peer` has exposed: it hands out
///   work.
/// - `slot(number, bytes)`, once there is room: at most `slot_bytes` of the window's own memory for a copy that this
///   rank exposes in an operation. It stays as it is until all have left that, whatever becomes of this rank. Each
///   handle has slots of its own, and allocates them on first use.
/// - `prepare(number)`, after an operation's slot has been exposed and before this rank waits: makes ready what the
///   next one takes, which is likely to have that number. Nobody else notices, and it never waits.
/// - `count(messages, bytes)` adds to what `counted` tells, as sent and as received.
/// - Waits watch the control channel like all others.
template <class N>
concept SharedMemoryTransport =
    Transport<N> && std::copyable<typename N::window> &&
    requires(N& net, typename N::window& shared, std::uint64_t context, const call_signature& call,
             const exposure& what, rank_t peer, std::uint64_t number, std::size_t bytes, deadline until) {
        { net.share(context) } -> std::same_as<typename N::window>;
        { N::window::places } -> std::convertible_to<std::uint64_t>;
        { N::window::slot_bytes } -> std::convertible_to<std::size_t>;
        { shared.has_room(peer, number, until) } -> std::same_as<bool>;
        { shared.expose(what) };
        { shared.exposed(peer, call, until) } -> std::same_as<const exposure*>;
        { shared.enter(number) } -> std::same_as<bool>;
        { shared.leave(number) } noexcept;
        { shared.abandon(number) } noexcept;
        { shared.pass(number) } noexcept;
        { shared.has_left(peer, number, until) } -> std::same_as<bool>;
        { shared.withdraw(number) } noexcept;
        { shared.claim(peer, number) } -> std::same_as<std::uint64_t>;
        { shared.slot(number, bytes) } -> std::same_as<byte_span>;
        { shared.prepare(number) };
        { shared.count(number, number) };
    };

namespace detail {

/// Stands for a window where there is none.
struct no_window {};

template <class N, bool Wanted>
struct window_of {
    using type = no_window;
};
template <SharedMemoryTransport N>
struct window_of<N, true> {
    using type = typename N::window;
};

}  // namespace detail
}}  // namespace rill::RILL_ABI
