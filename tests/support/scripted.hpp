#pragma once

#include <rill/concept/transport.hpp>
#include <rill/stream/frame.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace rill::testing_support {

/// A transport of one rank whose peers agree with whatever it calls, and send what a script says. It sends nothing.
class scripted {
  public:
    class message {
      public:
        message(rank_t source, const byte_pieces& pieces) : source_(source), pieces_(pieces) {}
        rank_t source() const { return source_; }
        byte_pieces pieces() const { return pieces_; }

      private:
        rank_t source_;
        byte_pieces pieces_;
    };
    struct sending {
        bool done() const { return true; }
        bool wait(deadline) const { return true; }
        void settle() noexcept {}
    };

    scripted(rank_t rank, int size) : rank_(rank), size_(size) {}

    /// What comes next from any peer, once the group's handshake is over: in one piece, or the header, `cut` bytes and
    /// the rest. Frames get the epoch, the context and the call that are due; `repairs` may be false to leave that to
    /// chance.
    void expect(byte_view bytes, std::optional<std::size_t> cut, bool repairs) {
        script_.push_back({buffer(bytes.begin(), bytes.end()), cut, repairs});
    }
    std::size_t bytes_to_come() const {
        std::size_t sum = 0;
        for (const scripted_message& one : script_) sum += one.bytes.size();
        return sum;
    }

    rank_t rank() const { return rank_; }
    int size() const { return size_; }
    time_point now() const { return {}; }
    traffic counted() const { return {}; }
    void sleep_until(time_point) {}

    sending post(rank_t, channel, const byte_pieces&) { return {}; }
    bool post(rank_t, channel, buffer&&, deadline = deadline::immediate) { return true; }

    std::optional<message> receive(rank_t peer, channel, deadline) {
        if (call_.kind == operation::handshake) return message(peer, greeting());
        if (next_ == script_.size()) return std::nullopt;
        scripted_message& one = script_[next_++];
        if (one.repairs) repair(one.bytes);
        return message(peer, pieces_of(one));
    }
    std::optional<message> receive(std::span<const rank_t>, channel, deadline) { return std::nullopt; }
    std::optional<message> receive_latest(std::span<const rank_t>, channel, deadline) { return std::nullopt; }
    bool receive_into(rank_t, channel, std::span<const byte_span>, deadline) { return false; }

    void announce(std::uint64_t context, const call_signature& call) {
        context_ = context;
        call_ = call;
    }
    std::optional<call_signature> inquire(rank_t, std::uint64_t, std::uint64_t, deadline) { return call_; }
    abort_notice abort(const abort_notice& notice) {
        if (!aborted_) aborted_ = notice;
        return *aborted_;
    }
    std::optional<abort_notice> aborted(std::uint64_t) { return aborted_; }
    std::uint64_t next_context(std::uint64_t) { return 1; }
    void close(std::uint64_t) {}

  private:
    struct scripted_message {
        buffer bytes;
        std::optional<std::size_t> cut;
        bool repairs;
    };

    byte_pieces greeting() {
        const wire::header head{
            .kind = call_.kind, .context = context_, .call = call_.hash(), .weight = 1, .contributors = 1};
        return view_frame(head, stream_view<std::int32_t>(segment{}, std::span<const std::int32_t>{}),
                          greeting_.data());
    }

    void repair(buffer& bytes) const {
        const std::uint32_t call = call_.hash();
        for (std::size_t at = 0; at + wire::header_bytes <= bytes.size(); at += frame_alignment)
            if (std::memcmp(bytes.data() + at, &wire::magic, sizeof wire::magic) == 0) {
                std::memset(bytes.data() + at + 12, 0, 4);  // the epoch
                std::memcpy(bytes.data() + at + 16, &context_, sizeof context_);
                // The call number of a frame includes its part; the script chooses among the first few parts.
                const std::uint32_t placed = call + std::to_integer<std::uint32_t>(bytes[at + 32] & std::byte{7});
                std::memcpy(bytes.data() + at + 32, &placed, sizeof placed);
            }
    }

    static byte_pieces pieces_of(const scripted_message& one) {
        const byte_view bytes(one.bytes);
        if (!one.cut || bytes.size() < wire::header_bytes + *one.cut) return bytes;
        byte_pieces pieces(bytes.first(wire::header_bytes));
        pieces.push(bytes.subspan(wire::header_bytes, *one.cut));
        pieces.push(bytes.subspan(wire::header_bytes + *one.cut));
        return pieces;
    }

    rank_t rank_;
    int size_;
    std::vector<scripted_message> script_;
    std::size_t next_ = 0;
    std::uint64_t context_ = 0;
    call_signature call_{};
    std::optional<abort_notice> aborted_;
    alignas(64) wire::header_block greeting_{};
};

static_assert(Transport<scripted>);

}  // namespace rill::testing_support
