#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A received message: it keeps the bytes alive (in one address space: the sender's own) until it is destroyed.
template <class M>
concept Message = std::movable<M> && requires(const M& message) {
    { message.source() } -> std::same_as<rank_t>;
    /// In the order sent; a transport may have joined the parts into one.
    { message.pieces() } -> std::same_as<byte_pieces>;
};

/// A borrowed send under way. Its bytes must stay valid and unchanged until it is done. Destroying it earlier withdraws
/// a message that nobody has taken yet, and never waits.
template <class S>
concept Sending = std::movable<S> && std::default_initializable<S> && requires(S& sending, deadline until) {
    { sending.done() } -> std::same_as<bool>;
    /// True when done, false when `until` has passed; throws what ended the context. A default-constructed one is done.
    { sending.wait(until) } -> std::same_as<bool>;
    /// Waits, whatever has ended, only while a receiver reads: withdraws what nobody has taken. For unwinding.
    { sending.settle() } noexcept;
};

/// One rank's end of a group of ranks.
///
/// Laws (testing/transport_laws.hpp runs them over every model):
/// - Messages of one (sender, receiver, channel) arrive in the order sent. Channels never meet.
/// - Posting never waits for the receiver, so post-then-receive cannot deadlock at any message size. A rank may post to
///   itself. Messages may be empty.
/// - `post(peer, on, pieces)` borrows; allowed only where a receiver is certain.
/// - `post(peer, on, buffer&&, until)` hands over. Mailboxes are bounded in bytes: where the receiver's is full it
///   waits for room until `until`, then returns false with the buffer untouched; by default it does not wait. A
///   message larger than the bound is taken by an empty mailbox.
/// - A receive returns an empty result when its deadline has passed. `deadline::immediate` takes what is there.
/// - Every wait also watches the control channel: after `abort` on a context (or on `every_context`) waits on it throw
///   the error of the notice on every rank. The first notice of a context wins; `abort` returns the one that won.
///   Waits on tags below the notice's `first_tag` go on, inquiries for such calls too; a later notice with a lower one
///   ends them. `aborted` returns the first notice.
/// - `announce` publishes which call this rank has entered in a context; calls of a context may be entered in any
///   order. `inquire` waits until `peer` has entered call `number` and returns what it entered. When the deadline has
///   passed before that, it returns the latest call that `peer` has entered, if its number is higher, or else nothing.
///   A transport that runs bodies tells at once where the body of `peer` has returned without entering call `number` or
///   a later one: it returns a call of kind `operation::departure` with that number.
///   A transport remembers at least the `calls_remembered` highest numbers.
/// - `next_context(key)`: a fresh context, the same on all ranks that have made the same calls with the same key.
/// - `close(context)` forgets a context: its undelivered messages are dropped.
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
        /// Into consecutive `targets`, whose sizes must add up to the message's (else `protocol_error`, message lost).
        { net.receive_into(peer, on, targets, until) } -> std::same_as<bool>;

        { net.announce(context, call) };
        { net.inquire(peer, context, number, until) } -> std::same_as<std::optional<call_signature>>;
        { net.abort(notice) } -> std::same_as<abort_notice>;
        { net.aborted(context) } -> std::same_as<std::optional<abort_notice>>;
        { net.next_context(context) } -> std::same_as<std::uint64_t>;
        { net.close(context) };
    };

/// A transport on which one rank may run several activities at once; everything above may then be called by any of
/// them. `spawn` starts an activity; its handle's `join()` waits and rethrows what it threw, its destructor joins.
/// `event` (set, reset, wait until) and `queue<T>` (push, pop until, close) are the means by which activities meet.
/// They are made from the endpoint (`typename N::event e{net}`), so that a wait can switch fibers and watch aborts.
template <class N>
concept ConcurrentTransport =
    Transport<N> && requires(N& net, void (*body)(), typename N::event& event, typename N::template queue<int>& queue,
                             typename N::activity& activity, deadline until) {
        { net.spawn(body) } -> std::same_as<typename N::activity>;
        { activity.join() };
        { event.set() };
        { event.reset() };
        { event.wait(until) } -> std::same_as<bool>;
        { queue.push(1) };
        { queue.pop(until) } -> std::same_as<std::optional<int>>;
        { queue.close() };
    };

/// Whether the activities of a rank go on while it computes. A transport whose activities share the rank's thread says
/// no by a member of that name: there they go on where the rank waits or looks.
template <ConcurrentTransport N>
bool activities_run_alone([[maybe_unused]] const N& net) {
    if constexpr (requires { net.activities_run_alone(); })
        return net.activities_run_alone();
    else
        return true;
}

/// A transport that can begin to receive a message before its rank waits for it.
///
/// - `expect(peer, on, targets)`: the next message of that channel which is not yet expected will be received, and may
///   come at once. `targets` is memory for all of its bytes, consecutive, or nothing: where the sizes add up, the
///   transport may put the bytes there, and the pieces of the message that is received in due course lie there.
/// - `forget(on)`: nothing of that channel is expected any more; once it returns, no target is written to.
template <class N>
concept ExpectingTransport =
    Transport<N> && requires(N& net, rank_t peer, channel on, std::span<const byte_span> targets) {
        { net.expect(peer, on, targets) };
        { net.forget(on) } noexcept;
    };

}}  // namespace rill::RILL_ABI
