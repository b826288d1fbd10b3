// Conversations over TCP. Either a peer's bytes, in pieces of any size, are read as a naive reader reads them, or
// refused where it refuses them; or they come on two lines. Or two conversations talk while connections break at any
// byte: each message arrives once, in order, and memory that was given back is not read again.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/tcp_conversation.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;

constexpr frame_limits limits{.note_bytes = 40, .fragment_bytes = 24, .part_bytes = 100};

conversation::options options_of(rank_t self, rank_t peer) {
    return {.self = self, .peer = peer, .most = limits, .window_bytes = 90, .ack_delay = milliseconds(20)};
}

struct message {
    frame_kind kind{};
    std::uint16_t tag = 0;
    std::vector<std::byte> bytes{};
    friend bool operator==(const message&, const message&) = default;
};

/// Keeps what has come, in memory of exactly its size.
struct collector {
    std::vector<message> came;
    std::vector<std::byte> note, part;

    byte_span begin_note(std::size_t size) {
        RILL_FUZZ_REQUIRE(size <= limits.note_bytes, "a note within its limit");
        note = std::vector<std::byte>(size);
        return note;
    }
    void end_note() { came.push_back({frame_kind::note, 0, std::move(note)}); }
    byte_span begin_part(std::uint16_t, std::size_t size) {
        RILL_FUZZ_REQUIRE(size <= limits.part_bytes, "a part within its limit");
        part = std::vector<std::byte>(size);
        return part;
    }
    void end_part(std::uint16_t tag) { came.push_back({frame_kind::part, tag, std::move(part)}); }
    void goodbye() { came.push_back({frame_kind::goodbye}); }
};

/// Hands bytes over as a socket does: into the room, the first pieces first.
void deliver(conversation& to, collector& sink, byte_view bytes, time_point now, std::size_t on = 0) {
    while (!bytes.empty()) {
        byte_span room[2];
        const std::size_t pieces = to.room(room, on);
        std::size_t count = 0;
        for (std::size_t i = 0; i < pieces && !bytes.empty(); ++i) {
            const std::size_t part = std::min(room[i].size(), bytes.size());
            std::memcpy(room[i].data(), bytes.data(), part);
            bytes = bytes.subspan(part);
            count += part;
        }
        to.arrived(count, sink, now, on);
    }
}

/// Takes up to `most` bytes of what a conversation has to write, of `pieces` pieces at most.
std::vector<std::byte> collect(conversation& from, std::size_t pieces, std::size_t most, time_point now) {
    byte_view out[8];
    std::vector<std::byte> taken;
    const std::size_t count = from.gather(std::span(out).first(pieces), now);
    for (std::size_t i = 0; i < count; ++i) {
        const byte_view part = out[i].first(std::min(out[i].size(), most - taken.size()));
        taken.insert(taken.end(), part.begin(), part.end());
    }
    from.wrote(taken.size());
    return taken;
}

template <class N>
N at(byte_view bytes, std::size_t offset) {
    N value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// Reads a whole stream; the reader under test sees it in pieces.
struct naive {
    std::vector<message> came{};
    std::uint64_t taken = 0;
    bool refuses = false;

    void read(byte_view bytes, std::uint64_t written) {
        std::uint64_t acknowledged = 0;
        message part;
        std::uint64_t missing = 0;
        bool is_over = false;
        const auto fault = [&] { refuses = true; };
        while (!bytes.empty()) {
            const auto kind = at<std::uint8_t>(bytes, 0);
            if (bytes.size() < 16) return void(taken += kind == 5 ? 0 : bytes.size());
            const auto tag = at<std::uint16_t>(bytes, 2);
            const auto size = at<std::uint32_t>(bytes, 4);
            const auto value = at<std::uint64_t>(bytes, 8);
            if (at<std::uint8_t>(bytes, 1) != 0 || kind < 1 || kind > 5) return fault();
            if (kind == 5) {
                if (tag != 0 || size != 0 || value < acknowledged || value > written) return fault();
                acknowledged = value;
                bytes = bytes.subspan(16);
                continue;
            }
            if (is_over) return fault();
            if (kind == 1 && (tag != 0 || value != 0 || size > 40)) return fault();
            if (kind == 2) {
                if (missing != 0 || value > 100 || size > value || size > 24 || (size == 0 && value != 0))
                    return fault();
                part = {frame_kind::part, tag, {}};
                missing = value;
            }
            if (kind == 3 &&
                (missing == 0 || tag != part.tag || value != 0 || size == 0 || size > missing || size > 24))
                return fault();
            if (kind == 4 && (tag != 0 || value != 0 || size != 0 || missing != 0)) return fault();
            bytes = bytes.subspan(16);
            taken += 16;
            if (bytes.size() < size) return void(taken += bytes.size());
            const byte_view content = bytes.first(size);
            bytes = bytes.subspan(size);
            taken += size;
            if (kind == 1) came.push_back({frame_kind::note, 0, {content.begin(), content.end()}});
            if (kind == 4) came.push_back({frame_kind::goodbye});
            is_over = kind == 4;
            if (kind != 2 && kind != 3) continue;
            part.bytes.insert(part.bytes.end(), content.begin(), content.end());
            missing -= size;
            if (missing == 0) came.push_back(part);
        }
    }
};

void check_hostile(rill::fuzz::input& in) {
    conversation tried(options_of(1, 2));
    collector sink;
    const std::size_t notes = in.below(3), piece = 1 + in.below(60);
    for (std::size_t i = 0; i < notes; ++i) tried.send_note(std::vector<std::byte>(i));
    RILL_FUZZ_REQUIRE(tried.attach(0), "a first connection");
    const std::uint64_t written = collect(tried, 8, in.below(40), time_point{}).size();
    const buffer bytes = rill::fuzz::copy_of(in.rest());
    naive expected;
    expected.read(bytes, written);
    bool refused = false;
    try {
        const rill::fuzz::allocation_budget at_most(32 * bytes.size() + rill::fuzz::error_texts);
        for (std::size_t i = 0; i < bytes.size(); i += piece)
            deliver(tried, sink, byte_view(bytes).subspan(i, std::min(piece, bytes.size() - i)), time_point{});
    } catch (const protocol_error& error) {
        RILL_FUZZ_REQUIRE(error.notice().culprit == 2, "the sender is blamed");
        refused = true;
    }
    RILL_FUZZ_REQUIRE(refused == expected.refuses, "both readers refuse, or none");
    RILL_FUZZ_REQUIRE(sink.came == expected.came, "the same messages");
    RILL_FUZZ_REQUIRE(refused || tried.taken() == expected.taken, "the same number of bytes");
}

/// A peer's bytes on two lines: each is taken or refused, and no more is held than the window permits.
void check_hostile_lines(rill::fuzz::input& in) {
    conversation::options chosen = options_of(1, 2);
    chosen.lines = 2;
    conversation tried(chosen);
    collector sink;
    const std::size_t notes = in.below(3);
    for (std::size_t i = 0; i < notes; ++i) tried.send_note(std::vector<std::byte>(i));
    for (const std::size_t on : {0U, 1U}) RILL_FUZZ_REQUIRE(tried.attach(0, on), "a first connection");
    collect(tried, 8, in.below(40), time_point{});
    try {
        while (!in.done()) {
            const unsigned step = in.below(128);
            const buffer bytes = rill::fuzz::copy_of(in.bytes(step / 2));
            deliver(tried, sink, bytes, time_point{}, step % 2);
        }
    } catch (const protocol_error& error) {
        RILL_FUZZ_REQUIRE(error.notice().culprit == 2, "the sender is blamed");
    }
}

/// One end of a talk.
struct end {
    conversation talk;
    collector sink{};
    std::vector<message> sent{};
    struct lent {
        conversation::ticket until;
        std::vector<std::byte> bytes;
    };
    std::deque<lent> memory{};
    std::vector<std::byte> wire{};  ///< on the way to the other end
    bool has_left = false;

    /// Overwrites the memory of what is done.
    void give_back() {
        for (lent& each : memory)
            if (talk.is_done(each.until)) std::fill(each.bytes.begin(), each.bytes.end(), std::byte{0xee});
    }
    void send(bool is_note, std::uint16_t tag, std::size_t size) {
        if (has_left) return;
        lent& made = memory.emplace_back();
        for (std::size_t i = 0; i < size; ++i) made.bytes.push_back(static_cast<std::byte>(sent.size() + i));
        sent.push_back({is_note ? frame_kind::note : frame_kind::part, is_note ? std::uint16_t{0} : tag, made.bytes});
        made.until = is_note ? talk.send_note(made.bytes) : talk.send_part(made.bytes, tag);
        give_back();
    }
    void write(std::size_t pieces, std::size_t most, time_point now) {
        const std::vector<std::byte> more = collect(talk, pieces, most, now);
        wire.insert(wire.end(), more.begin(), more.end());
    }
    void read(end& from, std::size_t most, time_point now) {
        const auto count = static_cast<std::ptrdiff_t>(std::min(most, from.wire.size()));
        deliver(talk, sink, byte_view(from.wire).first(static_cast<std::size_t>(count)), now);
        from.wire.erase(from.wire.begin(), from.wire.begin() + count);
        give_back();
    }
};

std::vector<message> lane(const std::vector<message>& of, bool notes) {
    std::vector<message> kept;
    for (const message& each : of)
        if ((each.kind == frame_kind::note) == notes) kept.push_back(each);
    return kept;
}

void connect(end& a, end& b) {
    a.wire.clear();
    b.wire.clear();
    a.talk.detach();
    b.talk.detach();
    const std::uint64_t a_taken = a.talk.taken(), b_taken = b.talk.taken();
    RILL_FUZZ_REQUIRE(a.talk.attach(b_taken) && b.talk.attach(a_taken), "a connection that goes on");
}

void check_talk(rill::fuzz::input& in) {
    end ends[2]{{.talk = conversation(options_of(0, 1))}, {.talk = conversation(options_of(1, 0))}};
    time_point now{};
    connect(ends[0], ends[1]);
    while (!in.done()) {
        const unsigned step = in.below(16);
        end& one = ends[step % 2];
        end& other = ends[1 - step % 2];
        switch (step / 2) {
            case 0: one.send(true, 0, in.below(limits.note_bytes + 1)); break;
            case 1: one.send(false, in.number<std::uint8_t>(), in.below(limits.part_bytes + 1)); break;
            case 2:
            case 3: one.write(1 + in.below(8), in.below(128), now); break;
            case 4: one.read(other, in.below(128), now); break;
            case 5:
                one.read(other, in.below(128), now);
                connect(one, other);
                break;
            case 6: now = now + milliseconds(static_cast<int>(in.below(30))); break;
            default:
                if (in.below(4) != 0) {
                    one.talk.say_heartbeat();
                    break;
                }
                one.talk.say_goodbye();
                if (!one.has_left) one.sent.push_back({frame_kind::goodbye});
                one.has_left = true;
        }
    }
    for (int rounds = 0; !ends[0].talk.is_idle() || !ends[1].talk.is_idle(); ++rounds) {
        RILL_FUZZ_REQUIRE(rounds < 10'000, "an end of the talk");
        now = now + milliseconds(5);
        for (end& each : ends) each.write(8, 1000, now);
        ends[0].read(ends[1], 1000, now);
        ends[1].read(ends[0], 1000, now);
    }
    for (int i = 0; i < 2; ++i) {
        const end& one = ends[i];
        const end& other = ends[1 - i];
        for (const bool notes : {true, false})
            RILL_FUZZ_REQUIRE(lane(other.sink.came, notes) == lane(one.sent, notes), "each message once, in order");
        RILL_FUZZ_REQUIRE(!one.has_left || other.sink.came.back().kind == frame_kind::goodbye,
                          "the goodbye comes last");
        for (const end::lent& each : one.memory)
            RILL_FUZZ_REQUIRE(one.talk.is_done(each.until), "a message that is done");
    }
}

}  // namespace

RILL_FUZZ_TARGET(tcp_conversation)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    switch (in.below(3)) {
        case 0: check_talk(in); break;
        case 1: check_hostile(in); break;
        default: check_hostile_lines(in);
    }
    return 0;
}
