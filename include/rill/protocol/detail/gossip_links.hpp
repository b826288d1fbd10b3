#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/session/detail/inquest.hpp>
#include <rill/session/detail/long_wait.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of one rank in one round of gossip after another. Ranks are in different rounds: as far apart as they
/// are in the graph of who waits for whom. So no rank is asked which round it is in, but for whom it waits.
template <Transport Net>
class gossip_links {
  public:
    using message = typename Net::message;

    explicit gossip_links(const session<Net>& of) : of_(of) {}
    gossip_links(const gossip_links&) = delete;
    gossip_links& operator=(const gossip_links&) = delete;

    std::uint64_t round() const { return round_; }
    void resume_at(std::uint64_t round) { round_ = round; }

    void begin() {
        start_ = now();
        counted_ = {};
    }
    /// Where the header of what is sent lies while it is lent.
    std::byte* header_room() { return header_.data(); }
    /// Borrows the bytes until `finish` or `settle`.
    void send(rank_t peer, const byte_pieces& frame) {
        sent_.push_back({of_.net().post(peer, of_.on(0), frame), peer});
        counted_.sent(frame.size_bytes());
    }
    /// Waits for a message of each of these ranks, ascending, and reads them as they come. They stay until `release`.
    /// A message of an earlier round has come twice, and is dropped: its sender has not begun this round before the
    /// first one was read.
    void receive(const std::vector<mixing_end>& from) {
        waiting_.clear();
        for (const mixing_end& each : from) waiting_.push_back(each.peer);
        while (!waiting_.empty()) {
            std::optional<message> got;
            await(wait_for(waiting_.front(), false), [&](deadline until) {
                got = of_.net().receive(std::span<const rank_t>(waiting_), of_.on(0), until);
                return got.has_value();
            });
            if (is_of_earlier_round(*got)) continue;
            std::erase(waiting_, got->source());
            counted_.received(got->pieces().size_bytes());
            got_.push_back(std::move(*got));
        }
        std::sort(got_.begin(), got_.end(), [](const message& a, const message& b) { return a.source() < b.source(); });
    }
    /// Those that have come, ascending by rank.
    const std::vector<message>& received() const { return got_; }
    /// Lets the senders use the memory again that they have lent.
    void release() { got_.clear(); }
    /// Waits until all that was sent in this round has been read.
    void finish() {
        for (sent& each : sent_)
            await(wait_for(each.peer, true), [&](deadline until) { return each.handle.wait(until); });
        sent_.clear();
    }
    /// The round is over on this rank.
    void advance() { ++round_; }
    /// When unwinding, after the others have been told: withdraws what nobody has begun to read.
    void settle() noexcept {
        got_.clear();
        for (sent& each : sent_) each.handle.settle();
        sent_.clear();
    }

    const traffic& counted() const { return counted_; }
    duration elapsed() const { return now() - start_; }
    [[gnu::cold]] detail::scene scene() const { return of_.scene(round_, 0, text_of({"gossip (round ", round_, ")"})); }

  private:
    struct sent {
        typename Net::sending handle;
        rank_t peer;
    };

    time_point now() const { return std::as_const(of_.net()).now(); }
    bool is_of_earlier_round(const message& got) const {
        return read_from(*this, got.source(), [&] { return frame_reader(got.pieces()).peek().number < round_; });
    }
    /// A message of a round explains a wait for one of a later round.
    long_wait wait_for(rank_t peer, bool reading) const {
        const int round = static_cast<int>(round_ + 1);
        return {.peer = peer, .reading = reading, .of_round = round, .in_round = round};
    }
    /// `attempt(until)`: whether what `what` waits for has happened.
    template <class Attempt>
    void await(const long_wait& what, Attempt&& attempt) {
        if (!attempt(start_ + of_.timeout() / 2)) await_long(what, attempt);
    }
    template <class Attempt>
    [[gnu::cold, gnu::noinline]] void await_long(const long_wait& what, Attempt& attempt) {
        of_.announce(what);
        for (int eighths_left = 3; eighths_left >= 0; --eighths_left) {
            if (has_departed(of_.witnesses().ask(what.peer, of_.context(), 1, deadline::immediate))) {
                of_.require_ground(what.peer, of_.timeout() / 8);
                scene().fail(failure::exception, what.peer, no_rank,
                             {"rank ", what.peer, " has returned from its body and mixes no more"});
            }
            if (!attempt(start_ + (of_.timeout() - duration{of_.timeout().ns / 8 * eighths_left}))) continue;
            of_.announce({});
            return;
        }
        of_.require_ground(what.peer, of_.timeout() / 8);
        const standstill origin = origin_of(of_.witnesses(), of_.waits(), 1, of_.rank(), what, of_.timeout() / 8);
        scene().fail(failure::timeout, origin.peer, origin.waiter,
                     {origin.text(of_.timeout()), ", which does not mix: slow, or the link between them is cut"});
    }

    const session<Net>& of_;
    std::uint64_t round_ = 0;
    time_point start_{};
    traffic counted_{};
    wire::header_block header_{};
    std::vector<sent> sent_;
    std::vector<message> got_;
    std::vector<rank_t> waiting_;  ///< whose messages have not come yet
};

/// Ends the loans of what a round has sent, when the round has failed and the others have been told.
template <Transport Net>
struct settled_at_exit {
    gossip_links<Net>& links;
    ~settled_at_exit() { links.settle(); }
};
template <Transport Net>
settled_at_exit(gossip_links<Net>&) -> settled_at_exit<Net>;

/// Rolls a codec back unless its round is kept.
template <class Codec>
struct undone_at_exit {
    Codec* codec;
    ~undone_at_exit() {
        if (codec != nullptr) codec->rollback();
    }
    void keep() { codec = nullptr; }
};
template <class Codec>
undone_at_exit(Codec*) -> undone_at_exit<Codec>;

}}}  // namespace rill::RILL_ABI::detail
