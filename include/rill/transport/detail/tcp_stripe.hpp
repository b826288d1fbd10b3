#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/tcp_framing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Numbered bytes of a conversation, from `begin` up to `end`.
struct stretch {
    std::uint64_t begin = 0, end = 0;
    std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

/// One of several connections of a conversation. Each takes stretches of the conversation's stream as fast as it can
/// carry them, and a head before each stretch says where its bytes belong. What a connection has not confirmed when it
/// is lost or falls silent goes to the others; the receiver passes over bytes that it has already.
///
/// `Stream` is the conversation. Does no I/O: it is used as a conversation of one connection is.
class stripe {
  public:
    static constexpr std::size_t most_bytes = std::size_t{64} << 10;  ///< of one stretch

    stripe() = default;

    /// A new connection.
    void attach() {
        *this = stripe(std::move(staging_));
        staging_.resize(most_bytes);
        attached_ = true;
    }
    template <class Stream>
    void detach(Stream& stream) {
        give_back(stream);
        *this = stripe(std::move(staging_));
    }
    /// Nothing has come for long: it gets no more until something comes, and what it has not confirmed goes to others.
    template <class Stream>
    void fall_silent(Stream& stream) {
        is_silent_ = true;
        give_back(stream);
    }

    void say_heartbeat() { owes_heartbeat_ = attached_; }
    bool awaits_answer() const { return !sent_.empty() || written_ != 0; }
    deadline ack_due() const { return attached_ && written_ == 0 ? ack_at_ : deadline::never; }

    template <class Stream>
    std::size_t gather(Stream& stream, std::span<byte_view> out, time_point now) {
        if (!attached_ || out.size() < 3) return 0;
        std::size_t count = 0;
        if (written_ == 0 && ack_left_ == 0) {
            if (!current_ && !is_silent_ && sent_.size() < most_sent) begin(stream);
            const bool tells = !ack_at_.is_never() && (current_ || is_ack_urgent_ || ack_at_.at <= now);
            if (owes_heartbeat_ || tells) {
                frame_head{.tag = received_, .value = stream.taken()}.write(ack_);
                ack_left_ = frame_head::size_bytes;
                owes_heartbeat_ = is_ack_urgent_ = false;
                ack_at_ = deadline::never;
                unconfirmed_bytes_ = 0;
            }
        }
        if (ack_left_ != 0) out[count++] = byte_view(ack_ + frame_head::size_bytes - ack_left_, ack_left_);
        if (!current_) return count;
        if (written_ < frame_head::size_bytes)
            out[count++] = byte_view(current_head_, frame_head::size_bytes).subspan(written_);
        const std::size_t inside = written_ < frame_head::size_bytes ? 0 : written_ - frame_head::size_bytes;
        return count + stream.pieces_of({current_->begin + inside, current_->end}, out.subspan(count));
    }
    void wrote(std::size_t count) {
        const std::size_t ack = std::min(count, ack_left_);
        ack_left_ -= ack;
        written_ += count - ack;
        if (!current_ || written_ < frame_head::size_bytes + current_->size()) return;
        sent_.push_back(*current_);
        if (std::exchange(is_current_given_back_, false)) given_back_ = sent_.size();
        current_.reset();
        written_ = 0;
    }

    template <class Stream>
    std::size_t room(Stream& stream, std::span<byte_span, 2> out) {
        std::size_t count = 0;
        direct_ = 0;
        if (head_filled_ == frame_head::size_bytes && coming_.begin == stream.taken()) {
            const byte_span target = stream.direct_room();
            direct_ = std::min(target.size(), coming_.size());
            if (direct_ != 0) out[count++] = target.first(direct_);
        }
        out[count++] = staging_;
        return count;
    }
    template <class Stream, class Sink>
    void arrived(Stream& stream, std::size_t count, Sink& sink, time_point now) {
        is_silent_ = false;
        const std::uint16_t before = received_;
        const std::size_t straight = std::min(count, direct_);
        if (straight != 0) {
            stream.filled(straight, sink);
            pass(straight);
        }
        for (byte_view rest = byte_view(staging_).first(count - straight); !rest.empty();) {
            if (head_filled_ < frame_head::size_bytes) {
                const std::size_t part = std::min(rest.size(), frame_head::size_bytes - head_filled_);
                std::memcpy(head_ + head_filled_, rest.data(), part);
                head_filled_ += part;
                rest = rest.subspan(part);
                if (head_filled_ == frame_head::size_bytes) begin_record(stream);
                continue;
            }
            const std::size_t part = std::min(rest.size(), coming_.size());
            stream.accept(coming_.begin, rest.first(part), sink);
            pass(part);
            rest = rest.subspan(part);
        }
        unconfirmed_bytes_ += count;
        if (before != received_ && ack_at_.is_never()) ack_at_ = now + stream.ack_delay();
        if (stream.ends_message() || unconfirmed_bytes_ >= stream.window() / 8) is_ack_urgent_ = true;
    }

  private:
    static constexpr std::size_t most_sent = std::size_t{1} << 15;  ///< the number of an acknowledgement has 16 bits

    explicit stripe(std::vector<std::byte>&& staging) : staging_(std::move(staging)) {}

    template <class Stream>
    void begin(Stream& stream) {
        current_ = stream.next_stretch(most_bytes);
        if (!current_) return;
        const auto size = static_cast<std::uint32_t>(current_->size());
        frame_head{.size = size, .kind = frame_kind::stretch, .value = current_->begin}.write(current_head_);
    }
    template <class Stream>
    void give_back(Stream& stream) {
        for (; given_back_ < sent_.size(); ++given_back_) stream.take_back(sent_[given_back_]);
        if (current_ && !std::exchange(is_current_given_back_, true)) stream.take_back(*current_);
    }
    template <class Stream>
    void begin_record(Stream& stream) {
        const frame_head head = frame_head::read(head_);
        const bool is_ack = head.kind == frame_kind::ack;
        if (head_[1] != std::byte{0}) stream.refuse("a frame with an unknown flag");
        if (!is_ack && head.kind != frame_kind::stretch) stream.refuse("a frame of an unknown kind");
        if (!is_ack) {
            if (head.size == 0 || head.size > most_bytes || head.tag != 0) stream.refuse("a stretch of a wrong size");
            coming_ = {head.value, head.value + head.size};
            if (coming_.end < coming_.begin || coming_.end > stream.taken() + stream.most_ahead())
                stream.refuse("a stretch beyond the window");
            return;
        }
        if (head.size != 0) stream.refuse("an acknowledgement with content");
        const std::size_t more = static_cast<std::uint16_t>(head.tag - confirmed_);
        if (more > sent_.size() || !stream.confirm(head.value))
            stream.refuse("an acknowledgement of what was not sent");
        confirmed_ = head.tag;
        sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(more));
        given_back_ -= std::min(given_back_, more);
        head_filled_ = 0;
    }
    /// Counts bytes of the stretch that is coming.
    void pass(std::size_t count) {
        coming_.begin += count;
        if (coming_.begin != coming_.end) return;
        head_filled_ = 0;
        ++received_;
    }

    bool attached_ = false, is_silent_ = false;
    // What is sent.
    std::deque<stretch> sent_{};        ///< what the peer has not confirmed
    std::size_t given_back_ = 0;        ///< how many of them, from the first on
    std::uint16_t confirmed_ = 0;       ///< how many the peer has confirmed
    std::optional<stretch> current_{};  ///< what is being written
    bool is_current_given_back_ = false;
    std::size_t written_ = 0;  ///< of `current_`, its head included
    std::byte current_head_[frame_head::size_bytes]{};
    // What is taken.
    std::vector<std::byte> staging_{};
    std::byte head_[frame_head::size_bytes]{};
    std::size_t head_filled_ = 0, direct_ = 0, unconfirmed_bytes_ = 0;
    stretch coming_{};            ///< what is still to come of a stretch
    std::uint16_t received_ = 0;  ///< how many have come whole
    bool is_ack_urgent_ = false, owes_heartbeat_ = false;
    deadline ack_at_ = deadline::never;
    std::byte ack_[frame_head::size_bytes]{};
    std::size_t ack_left_ = 0;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
