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

/// The memory that a rank exposes to the other ranks in one operation. The number of its elements follows from the
/// call.
struct exposure {
    call_signature call{};             ///< the call that this rank has made
    std::array<std::byte, 16> note{};  ///< a note from the collective to the other ranks
    const std::byte* input = nullptr;  ///< the other ranks read it
    std::byte* output = nullptr;       ///< the other ranks write to it; any value if the operation has no output
};

/// A transport whose ranks reach each other's memory: operations between them need no messages.
///
/// The ranks of one context share a *window*. `share(context)` gives each rank a handle to it; other activities of the
/// rank use copies of the handle. The number of an operation identifies it. Before a rank begins an operation, it must
/// have left its own operation `places` numbers earlier, by whichever handle; the caller ensures this.
///
/// Laws (testing/transport_laws.hpp checks them for every model):
/// - `has_room(peer, number, until)` waits until `peer` has left the earlier operations whose place and whose slot this
///   operation reuses: one at least `places` numbers earlier, and one that this handle has ended. Returns false when
///   `until` has passed. Once all peers have left them, `expose(what)` publishes, once, what this rank exposes in
///   operation `what.call.number`. It also announces that call, as `announce` does, and never waits.
/// - `exposed(peer, call, until)` waits for what `peer` exposes in that operation. Returns null when `until` has
///   passed, or when the peer has announced another call of that number; `inquire` then returns that call.
/// - `enter(number)` is called once this rank has seen what all ranks expose in an operation; from then on this rank
///   may read and write that memory. Returns false if one of the ranks has withdrawn. `leave(number)` says that this
///   rank accesses it no more; `abandon(number)` says that this rank has failed. A rank that has only read slots need
///   not enter, and leaves by `pass(number)`.
/// - `has_left(peer, number, until)` waits until `peer` has left the operation; what the peer wrote is then visible.
///   Returns false when `until` has passed.
/// - `withdraw(number)` returns when no other rank is inside that operation or can still enter it, even after an abort.
/// - `claim(peer, number)` hands out work: it counts from 0, among all ranks, in each operation that `peer` has
///   exposed.
/// - `slot(number, bytes)` may be called once there is room. It returns `bytes` bytes, at most `slot_bytes`, of the
///   window's own memory, for a copy that this rank exposes in operation `number`. The copy stays unchanged until all
///   ranks have left the operation, whatever becomes of this rank. Each handle has slots of its own, and allocates them
///   on first use.
/// - `prepare(number)` may be called after an operation's slot has been exposed and before this rank waits. It prepares
///   the place and the slot of the next operation, which is likely to have that number. Other ranks do not notice, and
///   it never waits.
/// - `count(messages, bytes)` adds to what `counted` returns, as sent and as received.
/// - Waits watch the control channel, like all waits of a transport.
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

/// The type of a window where none is used.
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
