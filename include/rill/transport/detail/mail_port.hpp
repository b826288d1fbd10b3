#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A note that has been received; `source` is `no_rank` where there was none.
struct received_note {
    rank_t source = no_rank;
    std::size_t size = 0;
};

/// How the receive of a part has ended.
struct part_end {
    std::size_t size = 0;
    bool cancelled = false;
};

/// What the mail engine needs of a network. A port carries *notes*, short messages that arrive unasked, in order from
/// each peer; and *parts*, long messages, each to a receive that is already posted when its sender begins. Parts of
/// one peer and tag match receives in the order in which both were begun; a part may be shorter than its receive.
///
/// A `request` is true while what it stands for has not ended; the bytes must stay until then. `is_complete` and `look`
/// test it, and empty it when it has ended. `cancel` asks that a receive ends without a part; `look` says whether it
/// did: a part that is already arriving is received all the same. `abandon` gives a request up when the port ends:
/// false where the port may still use the bytes. No call waits, except `await_note`, which waits until there is a note.
///
/// A port that `wakes` lets several threads wait: its `await_note(lock, until)` gives up the engine's mutex meanwhile,
/// and ends also when `wake` is called, or `until` has passed. `receive_note` gives only what `await_note`, `attend` or
/// `look`, which does not wait, have taken from the network. It makes progress also while no thread waits: a thread of
/// its own calls `attend(lock)`, which is `await_note` except that `wake` does not end it, or else `rest(lock, time)`.
/// Any other port ignores the lock and the deadline.
///
/// `take_loss` says once of each peer that it has gone without a farewell, `no_rank` if there is none. What stands for
/// messages from or to a peer that has gone has ended. A port need not notice it of a peer that it has exchanged
/// nothing with, until `watch` is called for it. `take_goodbye` says the same of a peer that has left with a farewell,
/// once all its notes have been received: nothing comes from it any more.
///
/// An error of the network is thrown as `library_error`. The engine calls a port that is not concurrent from one
/// thread; any other under a mutex, except `rank`, `size`, `neighbours` and `now`.
template <class P>
concept MailPort = std::constructible_from<typename P::library_error, rank_t, const char*> &&
                   std::constructible_from<P, const typename P::place&> &&
                   std::default_initializable<typename P::request> && std::movable<typename P::request> &&
                   requires(P& own, const P& port, typename P::request& begun, const typename P::options& chosen,
                            const std::byte* from, std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag,
                            std::mutex& lock, deadline until) {
                       { port.rank() } -> std::same_as<rank_t>;
                       { port.size() } -> std::same_as<int>;
                       { port.neighbours() } -> std::same_as<int>;  // ranks that share its cores, this one included
                       { port.is_concurrent() } -> std::same_as<bool>;
                       { P::now() } -> std::same_as<time_point>;
                       { P::name } -> std::convertible_to<const char*>;
                       { P::outlived } -> std::convertible_to<const char*>;  // the text of the error after its end
                       { P::is_simulation } -> std::convertible_to<bool>;    // then naps are pointless
                       own.configure(chosen);
                       own.free();
                       { own.send_note(from, size, peer) } -> std::same_as<typename P::request>;
                       { own.receive_note(into, size) } -> std::same_as<received_note>;
                       { P::wakes } -> std::convertible_to<bool>;
                       own.await_note(lock, until);
                       { own.take_loss() } -> std::same_as<rank_t>;
                       { own.take_goodbye() } -> std::same_as<rank_t>;
                       own.watch(peer);
                       { own.send_part(from, size, peer, tag) } -> std::same_as<typename P::request>;
                       { own.receive_part(into, size, peer, tag) } -> std::same_as<typename P::request>;
                       { static_cast<bool>(begun) };
                       { own.is_complete(begun) } -> std::same_as<bool>;
                       { own.look(begun) } -> std::same_as<std::optional<part_end>>;
                       { own.cancel(begun) } noexcept;
                       { own.abandon(begun) } noexcept -> std::same_as<bool>;
                       { own.end_job() } noexcept;
                   };

/// What a port tells of a peer: `arrived`, `silent` or `recovered`.
struct peer_news {
    rank_t peer = no_rank;
    peer_change change{};
};

/// A port for a `MonitoredTransport`. `incarnation` is that of the life which sits on a seat, or has last sat there; 0
/// where nobody has. After `monitor` the port keeps what it has to say to a silent peer, and goes on trying to reach
/// it: silence is no loss any more. `take_news` says once what has become of a peer, in order; `no_rank` if there is no
/// news. What is sent to a silent peer, or comes from it, must not use the memory of others for ever: `copy_all` copies
/// all that is on its way to a peer, and `move` lets a part that is arriving go on in other memory; false where it has
/// not begun, or has ended. All notes of a life must have been taken, and its loss or goodbye, before its seat can be
/// taken again; notes of the new life come after the news of its arrival.
template <class P>
concept MonitoringPort =
    MailPort<P> && requires(P& own, const P& port, rank_t peer, typename P::request& begun, byte_span into) {
        { port.incarnation(peer) } -> std::same_as<std::uint64_t>;
        own.monitor();
        own.copy_all(peer);
        { own.move(begun, into) } -> std::same_as<bool>;
        { port.takes_newcomers() } -> std::same_as<bool>;
        { own.take_news() } -> std::same_as<peer_news>;
    };

}}}  // namespace rill::RILL_ABI::mail
