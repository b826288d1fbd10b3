#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_framing.hpp>
#include <rill/transport/detail/tcp_stripe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What one rank and one peer say to each other, over one connection after the other, or over several lines at once,
/// each of which is one connection after the other: each message exactly once, notes in order, parts in order. Does no
/// I/O: the caller carries the bytes, and says when a connection is lost (`detach`) and when another one is ready
/// (`attach`).
///
/// Every byte of a frame, except those of acknowledgements, has a number. A receiver acknowledges what it has taken; a
/// sender keeps the rest and goes on, on a new connection, at the first byte that the receiver has not taken, also
/// within a frame. Notes are copied until then, up to `window_bytes`; a message that is not copied stays the caller's
/// until it is acknowledged. Notes overtake parts between two fragments.
///
/// Where there are several lines, the numbered bytes travel in stretches: see `stripe`. The receiver holds what comes
/// too early, at most `window_bytes` and the largest frame, so both ends must have the same window. A single line
/// carries the numbered bytes as they are.
///
/// A sink takes what arrives: `begin_note(size)` and `begin_part(tag, size)` return memory of that size, valid until
/// `end_note()`, `end_part(tag)`; `goodbye()` ends the conversation. The memory must outlast a lost connection. A sink
/// must not allocate what a peer announces without a bound: a note has at most `most.note_bytes`, a part
/// `most.part_bytes`.
class conversation {
  public:
    struct options {
        rank_t self = 0;
        rank_t peer = 0;
        frame_limits most;
        std::size_t window_bytes = std::size_t{4} << 20;  ///< copied or on their way, at most
        duration ack_delay = milliseconds(20);
        std::size_t lines = 1;
    };
    /// Names a message that has been sent; 0 one that is done at once. Its lowest bit is the message's lane: notes or
    /// parts.
    using ticket = std::uint64_t;

    explicit conversation(const options& chosen)
        : chosen_(chosen),
          staging_(chosen.lines == 1 ? staging_bytes : 0),
          stripes_(chosen.lines == 1 ? 0 : chosen.lines) {
        constexpr std::size_t longest = std::numeric_limits<std::uint32_t>::max();
        RILL_EXPECTS(chosen.most.note_bytes <= longest, "tcp: a note of this length has no frame");
        RILL_EXPECTS(chosen.most.fragment_bytes > 0 && chosen.most.fragment_bytes <= longest,
                     "tcp: a fragment of this length has no frame");
    }

    /// At most `most.note_bytes`. Throws `contract_violation` for more, and after the goodbye.
    ticket send_note(byte_view bytes) {
        RILL_EXPECTS(bytes.size() <= chosen_.most.note_bytes, "tcp: the note is longer than a peer takes");
        RILL_EXPECTS(!leaves_, "tcp: a note cannot follow the goodbye");
        return post(notes_, {.kind = frame_kind::note, .bytes = bytes}, true);
    }
    /// At most `most.part_bytes`. Throws `contract_violation` for more, and after the goodbye.
    ticket send_part(byte_view bytes, std::uint16_t tag) {
        RILL_EXPECTS(bytes.size() <= chosen_.most.part_bytes, "tcp: the part is longer than a peer takes");
        RILL_EXPECTS(!leaves_, "tcp: a part cannot follow the goodbye");
        return post(parts_, {.kind = frame_kind::part, .tag = tag, .bytes = bytes}, false);
    }
    /// All that was sent is done: what the peer has not acknowledged is copied, beyond `window_bytes` too.
    void copy_all() {
        for (frame& each : frames_) {
            if (each.is_borrowed) keep(each.content, each.copy);
            each.is_borrowed = false;
            each.ends = 0;
        }
        for (auto* lane : {&notes_, &parts_})
            for (message& each : *lane) {
                if (each.id != 0) keep(each.bytes, each.copy);
                each.id = 0;
            }
        std::copy(std::begin(last_), std::end(last_), std::begin(done_));
    }
    /// All that was sent in a conversation before counts as done in this one, in which nothing has been said.
    void follow(const conversation& before) {
        std::copy(std::begin(before.last_), std::end(before.last_), std::begin(last_));
        std::copy(std::begin(before.last_), std::end(before.last_), std::begin(done_));
    }
    /// Goes out after all that was sent before; nothing can be sent after it.
    void say_goodbye() {
        if (!std::exchange(leaves_, true)) post(parts_, {.kind = frame_kind::goodbye}, false);
    }
    /// Constant time: the messages of one lane are done in the order in which they were sent.
    bool is_done(ticket sent) const { return sent <= done_[sent % lanes]; }

    std::size_t lines() const { return chosen_.lines; }
    /// Writes an acknowledgement on this connection, also where nothing new was taken.
    void say_heartbeat(std::size_t on = 0) {
        if (is_striped()) return stripes_[on].say_heartbeat();
        owes_heartbeat_ = attached_;
    }
    /// Nothing has come on one of several lines for long: others carry what was written on it.
    void fall_silent(std::size_t on) {
        if (is_striped()) stripes_[on].fall_silent(*this);
    }

    std::uint64_t taken() const { return taken_; }                ///< numbered bytes that have arrived here
    std::uint64_t acknowledged() const { return acknowledged_; }  ///< numbered bytes that the peer has taken
    /// Whether something was written on this connection that the peer has not acknowledged.
    bool awaits_answer(std::size_t on = 0) const {
        return is_striped() ? stripes_[on].awaits_answer() : acknowledged_ < cursor_;
    }
    /// Whether the peer has taken all that was sent.
    bool is_idle() const { return acknowledged_ == numbered_ && notes_.empty() && parts_.empty(); }

    /// The connection is lost. An acknowledgement that has not come whole is dropped; all else stays.
    void detach(std::size_t on = 0) {
        if (is_striped()) return stripes_[on].detach(*this);
        attached_ = owes_heartbeat_ = false;
        ack_left_ = 0;
        if (head_filled_ != 0 && !frame_head::is_numbered(head_[0])) head_filled_ = 0;
    }
    /// Goes on over a new connection; the peer has taken `peer_taken` bytes, by the handshake. False where that cannot
    /// be: less than it has acknowledged, or more than was written. Of several lines the others go on meanwhile: the
    /// peer may have acknowledged more on them.
    bool attach(std::uint64_t peer_taken, std::size_t on = 0) {
        if (is_striped()) {
            stripes_[on].detach(*this);
            if (!confirm(peer_taken)) return false;
            stripes_[on].attach();
            return true;
        }
        if (peer_taken < acknowledged_ || peer_taken > most_written_) return false;
        detach();
        attached_ = true;
        told_ = taken_;  // by the handshake
        is_ack_urgent_ = false;
        ack_at_ = deadline::never;
        cursor_ = peer_taken;
        acknowledge(peer_taken);
        return true;
    }

    /// The bytes to write next, as up to `out.size()` pieces; returns how many pieces. The caller then writes some of
    /// them and says so by `wrote`, before it calls anything else.
    std::size_t gather(std::span<byte_view> out, time_point now, std::size_t on = 0) {
        if (is_striped()) return stripes_[on].gather(*this, out, now);
        if (!attached_ || out.empty()) return 0;
        std::size_t count = 0;
        // An acknowledgement stands between two frames only.
        const bool tells_taken = taken_ != told_ && (is_ack_due(now) || has_more());
        const bool waits = !ack_fits() && (owes_heartbeat_ || (taken_ != told_ && is_ack_due(now)));
        if (ack_left_ == 0 && ack_fits() && (owes_heartbeat_ || tells_taken)) {
            owes_heartbeat_ = false;
            frame_head{.value = taken_}.write(ack_);
            ack_left_ = frame_head::size_bytes;
            told_ = taken_;
            is_ack_urgent_ = false;
            ack_at_ = deadline::never;
        }
        if (ack_left_ != 0) out[count++] = byte_view(ack_ + frame_head::size_bytes - ack_left_, ack_left_);
        number_more();
        std::uint64_t at = cursor_;
        for (const frame& each : frames_from(cursor_)) {
            if (count == out.size()) break;
            count += pieces_of_frame(each, at, out.subspan(count));
            at = each.end();
            if (waits) break;  // the acknowledgement is next
        }
        return count;
    }
    /// The connection took the first `count` bytes of what was gathered.
    void wrote(std::size_t count, std::size_t on = 0) {
        if (is_striped()) return stripes_[on].wrote(count);
        const std::size_t ack = std::min(count, ack_left_);
        ack_left_ -= ack;
        cursor_ += count - ack;
        most_written_ = std::max(most_written_, cursor_);
    }

    /// Where the next bytes are to be read to: first the memory of what is arriving, then memory of the conversation.
    std::size_t room(std::span<byte_span, 2> out, std::size_t on = 0) {
        if (is_striped()) return stripes_[on].room(*this, out);
        std::size_t count = 0;
        if (head_filled_ == frame_head::size_bytes && !target_.empty()) out[count++] = target_;
        direct_ = count != 0 ? target_.size() : 0;
        out[count++] = staging_;
        return count;
    }
    /// The part that is arriving goes on in `to`, which has the size of the whole part; what has arrived is there.
    void move_part(byte_span to) {
        const bool is_inside = part_.data() <= target_.data() && target_.data() < part_.data() + part_.size();
        const std::size_t begin = to.size() - part_.size();
        const std::size_t inside = is_inside ? static_cast<std::size_t>(target_.data() - part_.data()) : 0;
        if (const std::size_t arrived = begin + inside; arrived != 0)
            std::memcpy(to.data(), part_.data() - begin, arrived);
        part_ = to.subspan(begin);
        if (is_inside) target_ = part_.subspan(inside, target_.size());
    }
    /// The first `count` bytes of the room have been filled. Throws `protocol_error` where they are wrong; then the
    /// conversation must not be used any more.
    template <class Sink>
    void arrived(std::size_t count, Sink& sink, time_point now, std::size_t on = 0) {
        if (is_striped()) return stripes_[on].arrived(*this, count, sink, now);
        const std::size_t straight = std::min(count, direct_);
        if (straight != 0) {
            advance(straight);
            if (target_.empty()) end_frame(sink);
        }
        take(byte_view(staging_).first(count - straight), sink);
        if (taken_ != told_ && ack_at_.is_never()) ack_at_ = now + chosen_.ack_delay;
        if (taken_ - told_ >= chosen_.window_bytes / 4) is_ack_urgent_ = true;
    }
    /// When an acknowledgement is due at the latest; never while none can be written.
    deadline ack_due(std::size_t on = 0) const {
        if (is_striped()) return stripes_[on].ack_due();
        return taken_ == told_ || !attached_ || !ack_fits() ? deadline::never : ack_at_;
    }

    // For its stripes.

    /// The next bytes to be written, at most `most`; first those that were taken back.
    std::optional<stretch> next_stretch(std::size_t most) {
        while (!given_back_.empty()) {
            stretch& first = given_back_.front();
            const stretch next{std::max(first.begin, acknowledged_), std::min(first.end, first.begin + most)};
            first.begin = next.end;
            if (first.begin >= first.end) given_back_.pop_front();
            if (next.begin < next.end) return next;
        }
        number_more();
        if (cursor_ == numbered_) return std::nullopt;
        const stretch next{cursor_, std::min(numbered_, cursor_ + most)};
        cursor_ = next.end;
        return next;
    }
    /// Another connection has to carry it.
    void take_back(const stretch& lost) { given_back_.push_back(lost); }
    /// Returns how many pieces. Those that the peer has taken may be gone: zeros stand for them.
    std::size_t pieces_of(stretch of, std::span<byte_view> out) const {
        static constexpr std::byte zeros[stripe::most_bytes]{};
        std::size_t count = 0;
        if (of.begin < acknowledged_ && !out.empty()) {
            const std::uint64_t end = std::min(of.end, acknowledged_);
            out[count++] = byte_view(zeros).first(static_cast<std::size_t>(end - of.begin));
            of.begin = end;
        }
        const auto rest = frames_from(of.begin);
        for (auto each = rest.begin(); each != rest.end() && of.begin < of.end && out.size() - count >= 2; ++each) {
            std::size_t left = of.size();
            for (byte_view& piece : out.subspan(count, pieces_of_frame(*each, of.begin, out.subspan(count)))) {
                piece = piece.first(std::min(piece.size(), left));
                left -= piece.size();
                if (!piece.empty()) ++count;
            }
            of.begin = each->end();
        }
        return count;
    }
    /// False where the peer cannot have taken so many bytes.
    bool confirm(std::uint64_t peer_taken) {
        if (peer_taken > cursor_) return false;
        if (peer_taken > acknowledged_) acknowledge(peer_taken);
        return true;
    }
    std::size_t window() const { return chosen_.window_bytes; }
    duration ack_delay() const { return chosen_.ack_delay; }
    /// How far a peer may write ahead of what this end has taken.
    std::uint64_t most_ahead() const {
        return chosen_.window_bytes + frame_head::size_bytes +
               std::max(chosen_.most.note_bytes, chosen_.most.fragment_bytes);
    }
    /// Where the next bytes of the stream are to be read to; empty where they are no content of a frame.
    byte_span direct_room() const { return head_filled_ == frame_head::size_bytes ? target_ : byte_span(); }
    template <class Sink>
    void filled(std::size_t count, Sink& sink) {
        advance(count);
        if (target_.empty()) end_frame(sink);
        take_held(sink);
    }
    /// Takes bytes of the stream from `begin` on, or holds them until those before have come.
    template <class Sink>
    void accept(std::uint64_t begin, byte_view bytes, Sink& sink) {
        if (begin + bytes.size() <= taken_) return;
        if (begin > taken_) return hold(begin, bytes);
        take(bytes.subspan(static_cast<std::size_t>(taken_ - begin)), sink);
        take_held(sink);
    }
    /// Whether a peer that waits for the end of a message should hear of it, once.
    bool ends_message() { return std::exchange(is_ack_urgent_, false); }
    [[noreturn]] void refuse(const char* what) const { refuse_bytes(chosen_.self, chosen_.peer, what); }

  private:
    static constexpr std::size_t staging_bytes = std::size_t{64} << 10;
    static constexpr ticket lanes = 2;

    struct message {
        frame_kind kind = frame_kind::note;
        std::uint16_t tag = 0;
        byte_view bytes{};
        std::vector<std::byte> copy{};
        ticket id = 0;
        std::size_t sent = 0;  ///< bytes of a part that have a number
    };
    /// A frame that the peer has not acknowledged.
    struct frame {
        std::uint64_t begin = 0;
        byte_view content;
        ticket ends = 0;           ///< the message whose last frame it is
        bool is_borrowed = false;  ///< the content is in memory of the caller
        std::vector<std::byte> copy;
        std::byte head[frame_head::size_bytes]{};
        std::uint64_t end() const { return begin + frame_head::size_bytes + content.size(); }
    };

    ticket post(std::deque<message>& to, message&& sent, bool may_copy) {
        // The memory of a copied note belongs to the conversation: a moved vector keeps its place.
        if (may_copy && copied_ + sent.bytes.size() <= chosen_.window_bytes) {
            sent.copy.assign(sent.bytes.begin(), sent.bytes.end());
            sent.bytes = sent.copy;
            copied_ += sent.copy.size();
        } else {
            const ticket lane = sent.kind == frame_kind::note ? 0 : 1;
            sent.id = last_[lane] += lanes;
        }
        to.push_back(std::move(sent));
        return to.back().id;
    }

    void keep(byte_view& from, std::vector<std::byte>& copy) {
        copy.assign(from.begin(), from.end());
        from = copy;
        copied_ += copy.size();
    }

    bool is_striped() const { return chosen_.lines != 1; }
    std::uint64_t on_the_way() const { return numbered_ - acknowledged_; }
    bool has_more() const { return cursor_ < numbered_ || !notes_.empty() || !parts_.empty(); }
    bool is_ack_due(time_point now) const { return is_ack_urgent_ || ack_at_.at <= now; }
    bool ack_fits() const {
        const auto rest = frames_from(cursor_);
        return rest.empty() || rest.front().begin == cursor_;
    }

    /// Cuts what waits into frames, notes first, until the window is full. At least one is on its way.
    void number_more() {
        while ((!notes_.empty() || !parts_.empty()) && (on_the_way() == 0 || on_the_way() < chosen_.window_bytes)) {
            // A goodbye stands among the parts, behind all of them; notes go first.
            std::deque<message>& from = notes_.empty() ? parts_ : notes_;
            message& next = from.front();
            const std::size_t size = next.kind == frame_kind::part
                                         ? std::min(next.bytes.size() - next.sent, chosen_.most.fragment_bytes)
                                         : next.bytes.size();
            frame& made = frames_.emplace_back();
            made.begin = numbered_;
            made.content = next.bytes.subspan(next.sent, size);
            made.is_borrowed = next.id != 0;
            frame_head head{.size = static_cast<std::uint32_t>(size), .kind = next.kind, .tag = next.tag};
            if (next.kind == frame_kind::part && next.sent == 0) head.value = next.bytes.size();
            if (next.sent != 0) head.kind = frame_kind::part_more;
            head.write(made.head);
            numbered_ = made.end();
            next.sent += size;
            if (next.sent < next.bytes.size()) continue;
            made.ends = next.id;
            made.copy = std::move(next.copy);
            from.pop_front();
        }
    }

    /// The frames from the one that holds a byte on.
    struct frame_range {
        std::deque<frame>::const_iterator first, last;
        std::deque<frame>::const_iterator begin() const { return first; }
        std::deque<frame>::const_iterator end() const { return last; }
        bool empty() const { return first == last; }
        const frame& front() const { return *first; }
    };
    frame_range frames_from(std::uint64_t byte) const {
        const auto first =
            std::partition_point(frames_.begin(), frames_.end(), [&](const frame& each) { return each.end() <= byte; });
        return {first, frames_.end()};
    }

    /// The bytes of a frame from one on, in at most two pieces; returns how many.
    static std::size_t pieces_of_frame(const frame& of, std::uint64_t from, std::span<byte_view> out) {
        const std::uint64_t skip = from - of.begin;
        std::size_t count = 0;
        if (skip < frame_head::size_bytes) out[count++] = byte_view(of.head, frame_head::size_bytes).subspan(skip);
        const std::size_t inside = skip < frame_head::size_bytes ? 0 : skip - frame_head::size_bytes;
        if (count < out.size() && inside < of.content.size()) out[count++] = of.content.subspan(inside);
        return count;
    }

    void acknowledge(std::uint64_t until) {
        acknowledged_ = until;
        while (!frames_.empty() && frames_.front().end() <= until) {
            copied_ -= frames_.front().copy.size();
            const ticket ended = frames_.front().ends;
            if (ended != 0) done_[ended % lanes] = ended;
            frames_.pop_front();
        }
    }

    /// Counts bytes that have come into `target_`.
    void advance(std::size_t count) {
        target_ = target_.subspan(count);
        taken_ += count;
    }
    template <class Sink>
    void take(byte_view bytes, Sink& sink) {
        while (!bytes.empty()) {
            if (head_filled_ < frame_head::size_bytes) {
                const std::size_t count = std::min(bytes.size(), frame_head::size_bytes - head_filled_);
                std::memcpy(head_ + head_filled_, bytes.data(), count);
                head_filled_ += count;
                if (frame_head::is_numbered(head_[0])) taken_ += count;
                bytes = bytes.subspan(count);
                if (head_filled_ == frame_head::size_bytes) begin_frame(sink);
                continue;
            }
            const std::size_t count = std::min(bytes.size(), target_.size());
            std::memcpy(target_.data(), bytes.data(), count);
            bytes = bytes.subspan(count);
            advance(count);
            if (target_.empty()) end_frame(sink);
        }
    }
    void hold(std::uint64_t begin, byte_view bytes) {
        std::vector<std::byte>& held = held_[begin];
        if (held.size() >= bytes.size()) return;
        held_bytes_ += bytes.size() - held.size();
        if (held_bytes_ > chosen_.lines * most_ahead()) refuse("more than the window holds");
        held.assign(bytes.begin(), bytes.end());
    }
    template <class Sink>
    void take_held(Sink& sink) {
        while (!held_.empty() && held_.begin()->first <= taken_) {
            const auto next = held_.extract(held_.begin());
            const byte_view bytes = next.mapped();
            held_bytes_ -= bytes.size();
            if (next.key() + bytes.size() > taken_)
                take(bytes.subspan(static_cast<std::size_t>(taken_ - next.key())), sink);
        }
    }
    template <class Sink>
    void begin_frame(Sink& sink) {
        if (const char* const fault = fault_of(head_, chosen_.most, part_.size())) refuse(fault);
        if (is_over_ && frame_head::is_numbered(head_[0])) refuse("a message after its goodbye");
        const frame_head head = frame_head::read(head_);
        if (is_striped() && head.kind == frame_kind::ack) refuse("an acknowledgement within a stretch");
        switch (head.kind) {
            case frame_kind::note: target_ = sink.begin_note(std::size_t{head.size}); break;
            case frame_kind::part:
                part_ = sink.begin_part(head.tag, static_cast<std::size_t>(head.value));
                part_tag_ = head.tag;
                target_ = part_.first(head.size);
                break;
            case frame_kind::part_more:
                if (head.tag != part_tag_) refuse("a fragment of another part");
                target_ = part_.first(head.size);
                break;
            case frame_kind::ack:
                if (head.value < acknowledged_ || head.value > most_written_)
                    refuse("an acknowledgement of what was not sent");
                acknowledge(head.value);
                break;
            case frame_kind::goodbye:
            case frame_kind::stretch: break;
        }
        if (target_.empty()) end_frame(sink);
    }
    template <class Sink>
    void end_frame(Sink& sink) {
        const frame_head head = frame_head::read(head_);
        head_filled_ = 0;
        switch (head.kind) {
            case frame_kind::note: return sink.end_note();
            case frame_kind::part:
            case frame_kind::part_more:
                part_ = part_.subspan(head.size);
                if (!part_.empty()) return;
                is_ack_urgent_ = true;  // the sender waits for its memory
                return sink.end_part(head.tag);
            case frame_kind::goodbye:
                if (!part_.empty()) refuse("a goodbye within a part");
                is_over_ = is_ack_urgent_ = true;
                return sink.goodbye();
            case frame_kind::ack:
            case frame_kind::stretch: return;
        }
    }

    options chosen_;
    // What is sent.
    std::deque<message> notes_, parts_;
    std::deque<frame> frames_;
    ticket last_[lanes]{0, 1}, done_[lanes]{0, 1};  ///< by lane: the newest ticket, and the newest that is done
    std::size_t copied_ = 0;
    std::uint64_t numbered_ = 0, cursor_ = 0, most_written_ = 0, acknowledged_ = 0;
    bool attached_ = false, leaves_ = false;
    std::deque<stretch> given_back_{};  ///< written on a connection that is lost or silent
    // What is taken.
    std::vector<std::byte> staging_;
    std::byte head_[frame_head::size_bytes]{};
    std::size_t head_filled_ = 0, direct_ = 0;
    byte_span target_, part_;
    std::uint16_t part_tag_ = 0;
    std::uint64_t taken_ = 0, told_ = 0;
    bool is_over_ = false, is_ack_urgent_ = false, owes_heartbeat_ = false;
    deadline ack_at_ = deadline::never;
    std::byte ack_[frame_head::size_bytes]{};
    std::size_t ack_left_ = 0;
    std::map<std::uint64_t, std::vector<std::byte>> held_{};  ///< bytes behind some that have not come, by their number
    std::size_t held_bytes_ = 0;
    std::vector<stripe> stripes_;  ///< none where there is one line
};

}}}  // namespace rill::RILL_ABI::tcp::detail
