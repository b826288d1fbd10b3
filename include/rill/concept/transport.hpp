#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A received message. It keeps its bytes alive until it is destroyed; in one address space these are the sender's own.
template <class M>
concept Message = std::movable<M> && requires(const M& message) {
    { message.source() } -> std::same_as<rank_t>;
    /// The parts in the order sent; a transport may have joined them into one.
    { message.pieces() } -> std::same_as<byte_pieces>;
};

/// A send in progress that borrows its bytes: they must stay valid and unchanged until it is done. Destroying it
/// earlier withdraws a message that no receiver has taken yet, and never waits.
template <class S>
concept Sending = std::movable<S> && std::default_initializable<S> && requires(S& sending, deadline until) {
    { sending.done() } -> std::same_as<bool>;
    /// Returns true when done, false when `until` has passed. Throws the error that ended the context. A
    /// default-constructed sending is done.
    { sending.wait(until) } -> std::same_as<bool>;
    /// For unwinding: withdraws the message if no receiver has taken it; otherwise waits until the receiver has read
    /// it, even after an abort.
    { sending.settle() } noexcept;
};

/// One rank's endpoint in a group of ranks.
///
/// Laws (testing/transport_laws.hpp checks them for every model):
/// - Messages of one (sender, receiver, channel) arrive in the order sent. Messages of different channels never mix.
/// - Posting never waits for the receiver, so post-then-receive cannot deadlock at any message size. A rank may post to
///   itself. Messages may be empty.
/// - `post(peer, on, pieces)` borrows the bytes. It is allowed only where a receiver is certain.
/// - `post(peer, on, buffer&&, until)` takes the buffer over. Mailboxes are bounded in bytes: if the receiver's mailbox
///   is full, the call waits for room until `until`, then returns false with the buffer untouched; by default it does
///   not wait. An empty mailbox accepts a message that is larger than the bound.
/// - A receive returns an empty result when its deadline has passed. With `deadline::immediate` it takes what is
///   already there.
/// - Every wait also watches the control channel: after `abort` on a context (or on `every_context`) waits on it throw
///   the error of the notice on every rank. The first notice of a context wins; `abort` returns the one that won. Where
///   control travels without an arbiter (`simulated::control_plane::travelling`), it is the first that reaches a rank:
///   it stays there, but notices that race may win on different ranks. Agreements must not rest on it.
///   Waits on tags below the notice's `first_tag` go on, inquiries for such calls too; a later notice with a lower one
///   ends them. `aborted` returns the first notice.
/// - `announce` publishes which call this rank has entered in a context; calls of a context may be entered in any
///   order. `inquire` waits until `peer` has entered call `number` and returns what it entered. If the deadline passes
///   before that, it returns the latest call that `peer` has entered if its number is higher, and otherwise nothing.
///   What is announced as no call (`is_state`) is replaced by the next announcement of that number, and an inquiry that
///   may wait returns what holds when it asks.
///   A transport that runs bodies answers at once if the body of `peer` has returned without entering call `number` or
///   a later one: it returns a call of kind `operation::departure` with that number.
///   Where a single endpoint may end, the answer is the same once that of `peer` has, unless it is known to have
///   entered one of them: it may have, if it was not asked in time. A transport remembers at least the
///   `calls_remembered` highest numbers.
/// - `next_context(key)` returns a fresh context, the same on all ranks that have called it equally often with that
/// key.
///   Keys are derived from views (`view::key`), so that this count begins anew with each view. A transport keeps a
///   count for each key as long as it lives, since any key may come again. A transport of a view is an
///   `EpochTransport`.
/// - `close(context)` forgets a context and drops its undelivered messages.
template <class N>
concept Transport =
    Message<typename N::message> && Sending<typename N::sending> &&
    requires(N& net, const N& constant, rank_t peer, std::span<const rank_t> peers, channel on, byte_pieces view,
             buffer&& bytes, std::span<const byte_span> targets, deadline until, time_point instant,
             const call_signature& call, const abort_notice& notice, std::uint64_t context, std::uint64_t number) {
        { constant.rank() } -> std::same_as<rank_t>;
        { constant.size() } -> std::same_as<int>;
        { constant.now() } -> std::same_as<time_point>;
        { net.sleep_until(instant) };
        { constant.counted() } -> std::same_as<traffic>;

        { net.post(peer, on, view) } -> std::same_as<typename N::sending>;
        { net.post(peer, on, std::move(bytes), until) } -> std::same_as<bool>;
        { net.post(peer, on, std::move(bytes)) } -> std::same_as<bool>;
        { net.receive(peer, on, until) } -> std::same_as<std::optional<typename N::message>>;
        /// The earliest arrival from any of `peers`.
        { net.receive(peers, on, until) } -> std::same_as<std::optional<typename N::message>>;
        /// The newest message from any of `peers`; older ones of that channel and those peers are dropped.
        { net.receive_latest(peers, on, until) } -> std::same_as<std::optional<typename N::message>>;
        /// Receives into consecutive `targets`. If their sizes do not add up to the message's size, throws
        /// `protocol_error`, and the message is lost.
        { net.receive_into(peer, on, targets, until) } -> std::same_as<bool>;

        { net.announce(context, call) };
        { net.inquire(peer, context, number, until) } -> std::same_as<std::optional<call_signature>>;
        { net.abort(notice) } -> std::same_as<abort_notice>;
        { net.aborted(context) } -> std::same_as<std::optional<abort_notice>>;
        { net.next_context(context) } -> std::same_as<std::uint64_t>;
        { net.close(context) };
    };

/// A transport on which one rank may run several activities at once, each of which may call every operation of
/// `Transport`. `spawn` starts an activity; its handle's `join()` waits and rethrows what the activity threw; the
/// handle's destructor joins. Activities synchronise by `event` (set, reset, wait until) and `queue<T>` (push, pop
/// until, close). Both are constructed from the endpoint (`typename N::event e{net}`), so that a wait can switch fibers
/// and watch aborts. An abort of all contexts ends waits for them; an event that is set, and what a queue holds, can be
/// had after it too.
///
/// - `this_activity()` identifies the calling activity among those of its rank that have not ended.
/// - `activities_run_alone()`: whether the activities of a rank make progress while the rank computes. If false, they
///   share the rank's thread and make progress only while the rank waits or polls.
template <class N>
concept ConcurrentTransport =
    Transport<N> && requires(N& net, const N& constant, void (*body)(), typename N::event& event,
                             typename N::template queue<int>& queue, typename N::activity& activity, deadline until) {
        { constant.this_activity() } -> std::same_as<const void*>;
        { constant.activities_run_alone() } -> std::same_as<bool>;
        { net.spawn(body) } -> std::same_as<typename N::activity>;
        { activity.join() };
        { event.set() };
        { event.reset() };
        { event.wait(until) } -> std::same_as<bool>;
        { queue.push(1) };
        { queue.pop(until) } -> std::same_as<std::optional<int>>;
        { queue.close() };
    };

/// A transport that can begin to receive a message before its rank waits for it.
///
/// - `expect(peer, on, targets)` says that this rank will receive the next message of that channel that it does not
///   expect yet; the transport may begin to receive it at once. `targets` is memory for all bytes of the message, in
///   order, or empty. If the sizes add up to the message's, the transport may write the bytes there, and the message
///   that this rank later receives then refers to them.
/// - `forget(on)` withdraws all expectations of that channel; once it returns, no target is written to.
template <class N>
concept ExpectingTransport =
    Transport<N> && requires(N& net, rank_t peer, channel on, std::span<const byte_span> targets) {
        { net.expect(peer, on, targets) };
        { net.forget(on) } noexcept;
    };

/// A transport that carries a large dense vector faster in several messages: `chunk_bytes()` is the size that none
/// should exceed. It is positive, the same on all ranks, and never changes.
template <class N>
concept ChunkingTransport = Transport<N> && requires(const N& net) {
    { net.chunk_bytes() } -> std::same_as<std::size_t>;
};

/// A transport that records what its user names: `span(name)` returns an object that records the time until its
/// destruction. The name must live as long as the record.
template <class N>
concept TracedTransport = Transport<N> && requires(const N& net, const char* name) { net.span(name); };

/// A transport with a model of computing: `compute(work)` lets the time pass that `work` units, at least 0, take this
/// rank. Messages travel meanwhile.
template <class N>
concept ComputingTransport = Transport<N> && requires(N& net, double work) {
    { net.compute(work) };
};

}}  // namespace rill::RILL_ABI
