#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/session/detail/inquest.hpp>
#include <rill/session/detail/long_wait.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A message with the scheduled transfer that it belongs to.
template <class Message>
struct arrival {
    transfer from;
    Message message;
    std::size_t skipped = 0;  ///< bytes at its front, which say by which way it came

    byte_pieces pieces() const { return message.pieces().after(skipped); }
};

/// One collective operation under way on one rank: it sends and receives on the operation's channel, remembers which
/// memory is still being read by others, and counts what passes.
template <Transport Net>
class exchange {
  public:
    using message = typename Net::message;
    static constexpr std::size_t skipped = 0;  ///< of what it receives; see `arrival`
    using window = typename detail::window_of<Net, true>::type;

    explicit exchange(const session<Net>& of) : of_(&of), net_(&of.net()), on_(of.on(0)) {}
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange() { settle(); }

    const session<Net>& of() const { return *of_; }
    Net& net() const { return *net_; }
    const call_signature& signature() const { return signature_; }
    std::uint64_t context() const { return on_.context; }

    /// `names`: of the call's options, until it has ended. `is_exposed`: the call is announced together with the memory
    /// that the rank exposes, not here.
    [[gnu::noinline]] void begin(const call_signature& signature, const option_names& names = no_options,
                                 bool is_exposed = false) {
        signature_ = signature;
        names_ = &names;
        on_.tag = tag_of(signature.number);
        start_ = net_->now();
        counted_ = {};
        if (!is_exposed) net_->announce(on_.context, signature);
    }

    /// Sends from the memory of `pieces`, which must not change until `await_readers` or `finish` has waited for its
    /// readers.
    void send(rank_t peer, const byte_pieces& pieces) { send(round_, peer, pieces); }

    /// Sends a message of the given round, the present one or a later one.
    [[gnu::noinline]] void send(int round, rank_t peer, const byte_pieces& pieces) {
        counted_.sent(pieces.size_bytes());
        sent& added = sent_.add({{}, peer, pieces, round});  // before the post: `settle` must know what a peer may read
        added.handle = net_->post(peer, on_, pieces);
    }

    /// Prepares for the next message of `peer` that is not expected yet, to be received into `targets` if the transport
    /// can.
    void expect(rank_t peer, std::span<const byte_span> targets) {
        if constexpr (ExpectingTransport<Net>) {
            net_->expect(peer, on_, targets);
            ++expected_;
        }
    }

    [[gnu::noinline]] message receive(rank_t peer) {
        std::optional<message> received;
        wait_for(peer, round_, [&](deadline until) {
            if (auto got = net_->receive(peer, on_, until)) received.emplace(std::move(*got));
            return received.has_value();
        });
        if (expected_ != 0) --expected_;
        counted_.received(received->pieces().size_bytes());
        return std::move(*received);
    }

    /// Waits for something that `peer` does in a round: `attempt(until)` returns whether it has happened. A long wait
    /// is announced to the others, so that the culprit can be found.
    template <class Attempt>
    void wait_for(rank_t peer, int round, Attempt&& attempt) {
        if (attempt(half_time())) return;
        wait_for_long({.peer = peer, .of_round = round, .in_round = round}, attempt);
    }
    /// The same where the peer may do it in any order.
    template <class Attempt>
    void wait_for(rank_t peer, Attempt&& attempt) {
        if (!attempt(half_time())) wait_for_long(detail::long_wait::of_any_order(peer), attempt);
    }

    /// Lets others access this rank's memory by `shared` until the operation is finished; unwinding withdraws it.
    void lend(window& shared) {
        lent_by_ = &shared;
        withdraw_ = &withdraw;
    }
    /// Counts traffic that passed without `send` and `receive`.
    void count(const traffic& passed) { counted_ += passed; }

    /// Begins a round. `looks`: whether this operation asks later what may be overwritten, so that it pays to find out
    /// now what has been read.
    void enter(int round, bool looks = true) {
        round_ = round;
        if (!looks || sent_.size() - oldest_ < many) return;
        // Looking too early costs time in a simulated network: what the last round sent is seldom done.
        const auto looks_done = [&](sent& s) { return s.round + 1 < round_ && s.handle.done(); };
        while (oldest_ < sent_.size() && looks_done(sent_[oldest_])) ++oldest_;
    }

    /// Whether a message of the present round, or of a later one, is being sent from `memory`.
    bool sends_this_round(byte_view memory) const {
        for (std::size_t i = sent_.size(); i-- > oldest_ && sent_[i].round >= round_;)
            if (sent_[i].reads(memory)) return true;
        return false;
    }

    /// Whether a receiver may still read from `memory`.
    [[gnu::noinline]] bool is_read(byte_view memory) {
        for (std::size_t i = oldest_; i < sent_.size(); ++i)
            if (sent_[i].reads(memory) && !sent_[i].handle.done()) return true;
        return false;
    }

    /// Waits until no receiver reads from `memory` any more, so that it may be overwritten.
    [[gnu::noinline]] void await_readers(byte_view memory) {
        for (std::size_t i = oldest_; i < sent_.size(); ++i)
            if (sent_[i].reads(memory)) await(sent_[i]);
    }

    /// Keeps a message until the end: this rank reads from it or forwards its content from where it lies.
    void keep(message&& m) { kept_.add(std::move(m)); }

    /// The messages whose content is being folded, with what they bring of it.
    plain_vector<arrival<message>>& operands() { return operands_; }

    /// The messages of the round under way, in ascending order of peers, each with the transfer that announced it.
    plain_vector<arrival<message>>& arrivals() { return arrivals_; }

    /// Releases the kept messages and waits until everything sent has been received.
    ///
    /// A kept message can be released only when what this rank forwards of it has been read, and others wait for that
    /// release. Releasing the latest first cannot deadlock, because what came in one round is forwarded in later ones.
    [[gnu::noinline]] void finish() {
        for (; !kept_.empty(); kept_.pop_back())
            for (byte_view piece : kept_.back().pieces()) await_readers(piece);
        for (std::size_t i = oldest_; i < sent_.size(); ++i) await(sent_[i]);
        forget();
    }

    /// Ends the operation when unwinding, after all ranks have been told: withdraws what nobody has begun to read.
    ///
    /// The latest message comes first. While this rank waits for a reader, others may receive messages that it has not
    /// withdrawn yet, and all messages before these must still be there. This order cannot deadlock: a reader waits
    /// only for readers of what it has sent after it received the message, so each wait is for a later message.
    [[gnu::noinline]] void settle() noexcept {
        arrivals_.clear();
        operands_.clear();
        if constexpr (ExpectingTransport<Net>)
            if (std::exchange(expected_, 0) != 0) net_->forget(on_);
        for (; !sent_.empty(); sent_.pop_back()) {
            while (!kept_.empty() && !forwards(kept_.back())) kept_.pop_back();
            sent_.back().handle.settle();
        }
        kept_.clear();
        if (lent_by_ != nullptr) withdraw_(lent_by_, signature_.number);
        forget();
    }

    const traffic& counted() const { return counted_; }
    duration elapsed() const { return net_->now() - start_; }

    /// A frame of another call arrived: finds the rank whose call differs from the others' and throws `mismatch`.
    [[noreturn, gnu::cold]] void disagree(rank_t source) const { inquest().disagree(source); }

    /// Ends the operation with `source` as the culprit, which did `what` ("sent a part twice").
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(rank_t source, std::initializer_list<text_piece> what) const {
        scene().refuse(source, what);
    }

    /// This rank's place in the operation, for messages: "all_reduce (operation 7)".
    [[gnu::cold]] detail::scene scene() const {
        return of_->scene(signature_.number, on_.tag,
                          text_of({name(signature_.kind), " (operation ", signature_.number, ")"}));
    }

  private:
    static constexpr std::size_t many = 16;

    struct sent {
        typename Net::sending handle;
        rank_t peer;
        byte_pieces pieces;
        int round;

        bool reads(byte_view memory) const {
            for (byte_view piece : pieces)
                if (piece.data() < memory.data() + memory.size() && memory.data() < piece.data() + piece.size())
                    return true;
            return false;
        }
    };

    /// Whether a message that is being sent reads from `kept`.
    bool forwards(const message& kept) const {
        for (const sent& s : sent_)
            for (const byte_view piece : kept.pieces())
                if (s.reads(piece)) return true;
        return false;
    }

    [[gnu::noinline]] void await(sent& s) {
        if (s.handle.wait(half_time())) return;
        wait_for_long({.peer = s.peer, .reading = true, .of_round = s.round, .in_round = round_},
                      [&](deadline until) { return s.handle.wait(until); });
    }

    time_point half_time() const { return start_ + of_->timeout() / 2; }

    /// The rest of a wait, which is announced to the others. Between its parts it asks whether the peer has left.
    [[gnu::cold, gnu::noinline]] void wait_for_long(const detail::long_wait& what,
                                                    function_ref<bool(deadline)> attempt) {
        of_->announce(what, signature_.number);
        bool is_over = false;
        for (int eighths_left = 3; !is_over && eighths_left >= 0; --eighths_left) {
            inquest().require_presence(what.peer);
            is_over = attempt(start_ + (of_->timeout() - duration{of_->timeout().ns / 8 * eighths_left}));
        }
        if (!is_over) inquest().nothing_came(what);
        of_->announce({}, signature_.number);
    }

    static void withdraw(void* from, std::uint64_t number) noexcept { static_cast<window*>(from)->withdraw(number); }

    void forget() noexcept {
        sent_.clear();
        oldest_ = 0;
        round_ = 0;
        lent_by_ = nullptr;
    }

    detail::inquest inquest() const {
        return {of_->witnesses(), scene(), of_->waits(), signature_, *names_, of_->timeout()};
    }

    const session<Net>* of_;
    Net* net_;
    channel on_;
    call_signature signature_{};
    const option_names* names_ = &no_options;
    time_point start_{};
    traffic counted_{};
    plain_vector<sent> sent_;
    std::size_t oldest_ = 0;   // all sends before this one are done
    void* lent_by_ = nullptr;  ///< a window; untyped, so that groups which lend nothing do not compile its code
    void (*withdraw_)(void* window, std::uint64_t number) noexcept = nullptr;
    plain_vector<message> kept_;
    plain_vector<arrival<message>> arrivals_;
    plain_vector<arrival<message>> operands_;
    int round_ = 0;
    std::size_t expected_ = 0;  // messages that are expected and have not been received
};

}}  // namespace rill::RILL_ABI
