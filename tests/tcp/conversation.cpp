#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/transport/detail/tcp_conversation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using bytes = std::vector<std::byte>;

bytes text(const std::string& of) {
    bytes made(of.size());
    for (std::size_t i = 0; i < of.size(); ++i) made[i] = static_cast<std::byte>(of[i]);
    return made;
}

/// Bytes of which no two that are near each other are equal, so that a wrong order shows.
bytes filled(std::size_t size, std::size_t seed) {
    bytes made(size);
    for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<std::byte>(seed + 37 * i + 101 * (i / 256));
    return made;
}

/// Keeps what arrives, by lane.
struct inbox {
    std::vector<bytes> notes, parts;
    std::vector<std::uint16_t> tags;
    bool is_over = false;

    byte_span begin_note(std::size_t size) { return notes.emplace_back(size); }
    void end_note() { ++whole_notes; }
    byte_span begin_part(std::uint16_t tag, std::size_t size) {
        tags.push_back(tag);
        return parts.emplace_back(size);
    }
    void end_part(std::uint16_t) { ++whole_parts; }
    void goodbye() { is_over = true; }
    std::size_t whole_notes = 0, whole_parts = 0;
};

struct side {
    explicit side(rank_t self, std::size_t window = 200)
        : talk({.self = self,
                .peer = 1 - self,
                .most = {.note_bytes = 100, .fragment_bytes = 40, .part_bytes = 1000},
                .window_bytes = window}) {}
    conversation talk;
    inbox in;
};

/// What the kernels hold of one direction of a connection.
using line = std::deque<std::byte>;

/// Writes at most `most` bytes of what is to be written; true where any were.
bool write(side& from, line& to, std::size_t most, time_point now) {
    byte_view pieces[8];
    const std::size_t count = from.talk.gather(pieces, now);
    std::size_t wrote = 0;
    for (std::size_t i = 0; i < count; ++i)
        for (const std::byte each : pieces[i])
            if (wrote < most) {
                to.push_back(each);
                ++wrote;
            }
    from.talk.wrote(wrote);
    return wrote != 0;
}

/// Reads at most `most` bytes; true where any were.
bool read(line& from, side& to, std::size_t most, time_point now) {
    byte_span room[2];
    const std::size_t count = to.talk.room(room);
    std::size_t got = 0;
    for (std::size_t i = 0; i < count; ++i)
        for (std::byte& each : room[i]) {
            if (got == most || from.empty()) break;
            each = from.front();
            from.pop_front();
            ++got;
        }
    to.talk.arrived(got, to.in, now);
    return got != 0;
}

/// A connection between two sides, both of which learn what the other has taken.
bool connect(side& a, side& b) {
    a.talk.detach();
    b.talk.detach();
    return a.talk.attach(b.talk.taken()) && b.talk.attach(a.talk.taken());
}

/// Carries everything in both directions until nothing moves; time passes, so that acknowledgements become due.
void settle(side& a, side& b, line& ab, line& ba, time_point& now) {
    for (int idle = 0; idle < 3; ++idle) {
        now = now + milliseconds(30);
        for (bool moved = true; moved;) {
            moved = write(a, ab, 1000, now);
            moved = write(b, ba, 1000, now) || moved;
            moved = read(ab, b, 1000, now) || moved;
            moved = read(ba, a, 1000, now) || moved;
            if (moved) idle = 0;
        }
    }
}

std::string failure_of(const frame_head& head) {
    side of(1);
    of.talk.attach(0);
    line sent(frame_head::size_bytes);
    bytes raw(frame_head::size_bytes);
    head.write(raw.data());
    std::copy(raw.begin(), raw.end(), sent.begin());
    try {
        while (read(sent, of, 1, {})) {
        }
    } catch (const protocol_error& wrong) {
        CHECK(wrong.culprit() == 0);
        return wrong.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a borrowed part is done when it is acknowledged, and a note at once") {
    side a(0), b(1);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    const bytes large = filled(500, 7), small = text("note");
    const auto part = a.talk.send_part(large, 9);
    CHECK(a.talk.send_note(small) == 0);
    CHECK_FALSE(a.talk.is_done(part));
    write(a, ab, 10'000, now);
    CHECK_FALSE(a.talk.is_done(part));
    settle(a, b, ab, ba, now);
    CHECK(a.talk.is_done(part));
    CHECK(a.talk.is_idle());
    CHECK(b.in.parts == std::vector<bytes>{large});
    CHECK(b.in.tags == std::vector<std::uint16_t>{9});
    CHECK(b.in.notes == std::vector<bytes>{small});
}

TEST_CASE("a note overtakes what is left of a part; a goodbye does not") {
    side a(0, 100), b(1, 100);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    const bytes large(900), small(50), borrowed(90);
    a.talk.send_part(large, 1);
    write(a, ab, 1000, now);
    CHECK(a.talk.send_note(small) == 0);
    const auto beyond = a.talk.send_note(borrowed);  // more than the window holds
    a.talk.say_goodbye();
    CHECK_FALSE(a.talk.is_done(beyond));
    while (b.in.whole_notes < 2) {
        now = now + milliseconds(30);
        read(ab, b, 1000, now), write(b, ba, 1000, now), read(ba, a, 1000, now), write(a, ab, 1000, now);
    }
    CHECK(b.in.whole_parts == 0);
    settle(a, b, ab, ba, now);
    CHECK(a.talk.is_done(beyond));
    CHECK(b.in.whole_parts == 1);
    CHECK(b.in.is_over);
}

TEST_CASE("each lane is done in its own order") {
    side a(0, 100), b(1, 100);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    const bytes part = filled(300, 1), note = filled(90, 2);
    conversation::ticket parts[2], notes[2];
    for (auto& each : parts) each = a.talk.send_part(part, 1);
    CHECK(a.talk.send_note(note) == 0);
    for (auto& each : notes) each = a.talk.send_note(note);
    const auto done = [&] {
        int count = 0;
        for (const auto each : {notes[0], notes[1], parts[0], parts[1]}) count += a.talk.is_done(each) ? 1 : 0;
        return count;
    };
    for (int seen = 0; seen < 4;) {
        now = now + milliseconds(30);
        write(a, ab, 10, now), read(ab, b, 1000, now), write(b, ba, 1000, now), read(ba, a, 1000, now);
        seen = done();
        CHECK((!a.talk.is_done(notes[1]) || a.talk.is_done(notes[0])));
        for (const std::size_t i : {0U, 1U}) CHECK((!a.talk.is_done(parts[i]) || b.in.whole_parts > i));
    }
    CHECK(b.in.parts == std::vector<bytes>{part, part});
}

TEST_CASE("a message that no peer takes is refused where it is sent") {
    side a(0), b(1);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    CHECK_THROWS_WITH_AS(a.talk.send_note(bytes(101)), doctest::Contains("the note is longer"), contract_violation);
    CHECK_THROWS_WITH_AS(a.talk.send_part(bytes(1001), 1), doctest::Contains("the part is longer"), contract_violation);
    CHECK(a.talk.is_idle());
    const bytes note = filled(100, 1), part = filled(1000, 2);
    a.talk.send_note(note);
    a.talk.send_part(part, 1);
    settle(a, b, ab, ba, now);
    CHECK(b.in.notes == std::vector<bytes>{note});
    CHECK(b.in.parts == std::vector<bytes>{part});
}

TEST_CASE("limits without a frame are refused") {
    const auto make = [](std::size_t note, std::size_t fragment) {
        conversation({.most = {.note_bytes = note, .fragment_bytes = fragment}});
    };
    CHECK_THROWS_AS(make(std::size_t{1} << 32, 1), contract_violation);
    CHECK_THROWS_AS(make(1, std::size_t{1} << 32), contract_violation);
    CHECK_THROWS_AS(make(1, 0), contract_violation);
    CHECK_NOTHROW(make(0, 1));
}

TEST_CASE("nothing can be sent after the goodbye") {
    side a(0), b(1);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    a.talk.say_goodbye();
    CHECK_THROWS_WITH_AS(a.talk.send_note({}), doctest::Contains("cannot follow the goodbye"), contract_violation);
    CHECK_THROWS_WITH_AS(a.talk.send_part({}, 1), doctest::Contains("cannot follow the goodbye"), contract_violation);
    a.talk.say_goodbye();
    settle(a, b, ab, ba, now);
    CHECK(b.in.is_over);
    CHECK(a.talk.is_idle());
    CHECK((b.in.notes.empty() && b.in.parts.empty()));
}

TEST_CASE("a heartbeat is one frame that changes nothing") {
    side a(0), b(1);
    a.talk.say_heartbeat();
    REQUIRE(connect(a, b));
    line ab, ba;
    CHECK_FALSE(write(a, ab, 1000, {}));
    a.talk.say_heartbeat();
    CHECK(write(a, ab, 1000, {}));
    CHECK(ab.size() == frame_head::size_bytes);
    CHECK_FALSE(write(a, ab, 1000, {}));
    CHECK(read(ab, b, 1000, {}));
    CHECK(b.talk.taken() == 0);
    CHECK((a.talk.is_idle() && b.talk.is_idle()));
    a.talk.say_heartbeat();
    REQUIRE(connect(a, b));
    CHECK_FALSE(write(a, ab, 1000, {}));
}

TEST_CASE("an acknowledgement that is due goes out after the frame that is being written, however much waits") {
    side a(0, 4000), b(1, 4000);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    const bytes answered = filled(100, 1), backlog = filled(1000, 2);
    a.talk.send_part(backlog, 4);
    write(a, ab, 20, now);  // inside a frame
    const auto part = b.talk.send_part(answered, 3);
    while (write(b, ba, 1000, now)) {
    }
    while (read(ba, a, 1000, now)) {
    }
    CHECK(a.talk.ack_due().is_never());
    now = now + milliseconds(30);
    write(a, ab, 1000, now);  // the rest of the frame
    CHECK(ab.size() < 100);
    CHECK(a.talk.ack_due().at <= now);
    write(a, ab, frame_head::size_bytes, now);
    while (read(ab, b, 1000, now)) {
    }
    CHECK(b.talk.is_done(part));
    CHECK(b.in.whole_parts == 0);
}

TEST_CASE("nothing is due while there is no connection") {
    side a(0), b(1);
    REQUIRE(connect(a, b));
    line ab, ba;
    b.talk.send_note(text("note"));
    write(b, ba, 1000, {});
    read(ba, a, 1000, {});
    CHECK_FALSE(a.talk.ack_due().is_never());
    a.talk.detach();
    CHECK(a.talk.ack_due().is_never());
}

TEST_CASE("no more than the window is on its way") {
    side a(0, 100);
    a.talk.attach(0);
    const bytes large(1000);
    a.talk.send_part(large, 1);
    line ab;
    while (write(a, ab, 1000, {})) {
    }
    CHECK(ab.size() < 100 + 40 + frame_head::size_bytes);
}

TEST_CASE("a conversation that is cut at any byte of an exchange, on any side, loses nothing") {
    const bytes part = filled(100, 3), note = text("a note"), answer = text("an answer");
    for (std::size_t cut = 0; cut < 400; ++cut)
        for (const bool lose_answers : {false, true}) {
            side a(0), b(1);
            REQUIRE(connect(a, b));
            line ab, ba;
            time_point now{};
            a.talk.send_note(note);
            const auto sent = a.talk.send_part(part, 4);
            b.talk.send_note(answer);
            a.talk.say_goodbye();
            for (std::size_t carried = 0; carried < cut; ++carried) {
                now = now + milliseconds(30);
                write(a, ab, 1, now), write(b, ba, 1, now), read(ab, b, 1, now);
                if (!lose_answers) read(ba, a, 1, now);
            }
            ab.clear();
            ba.clear();
            REQUIRE(connect(a, b));
            settle(a, b, ab, ba, now);
            REQUIRE(a.talk.is_done(sent));
            REQUIRE(b.in.notes == std::vector<bytes>{note});
            REQUIRE(a.in.notes == std::vector<bytes>{answer});
            REQUIRE(b.in.parts == std::vector<bytes>{part});
            REQUIRE((b.in.is_over && a.talk.is_idle() && b.talk.is_idle()));
        }
}

TEST_CASE("at any byte of an exchange both ends can free the memory that a part is sent from, and arrives in") {
    const bytes part = filled(300, 3), note = filled(90, 5);
    for (std::size_t moved_at = 0; moved_at < 800; ++moved_at)
        for (const bool twice : {false, true}) {
            side a(0), b(1);
            REQUIRE(connect(a, b));
            line ab, ba;
            time_point now{};
            bytes lent_part = part, lent_note = note;
            const auto first = a.talk.send_part(lent_part, 4);
            for (int i = 0; i < 3; ++i) a.talk.send_note(lent_note);  // the third one is not copied
            const auto free_memory = [&] {
                a.talk.copy_all();
                lent_part.assign(lent_part.size(), std::byte{0xff});
                lent_note.assign(lent_note.size(), std::byte{0xff});
                REQUIRE(a.talk.is_done(first));
                if (b.in.parts.empty() || b.in.whole_parts != 0) return;
                bytes other(part.size());
                b.talk.move_part(other);
                b.in.parts[0].assign(part.size(), std::byte{0xff});
                b.in.parts[0].swap(other);
            };
            for (std::size_t carried = 0; carried < moved_at; ++carried) {
                now = now + milliseconds(30);
                write(a, ab, 1, now), write(b, ba, 1, now), read(ab, b, 1, now), read(ba, a, 1, now);
                if (twice && carried == moved_at / 2) free_memory();
            }
            free_memory();
            if (moved_at % 3 == 0) {
                ab.clear(), ba.clear();
                REQUIRE(connect(a, b));
            }
            const auto second = a.talk.send_part(part, 5);
            CHECK_FALSE(a.talk.is_done(second));
            settle(a, b, ab, ba, now);
            REQUIRE(a.talk.is_done(second));
            REQUIRE(b.in.notes == std::vector<bytes>(3, note));
            REQUIRE(b.in.parts == std::vector<bytes>{part, part});
            REQUIRE((a.talk.is_idle() && b.talk.is_idle()));
        }
}

TEST_CASE("under random cuts, stalls and short reads all that is sent arrives once and in order") {
    const char* const chosen = std::getenv("RILL_TCP_SCHEDULES");
    const long schedules = chosen != nullptr ? std::atol(chosen) : 10'000;
    for (long number = 0; number < schedules; ++number) {
        random_sequence random(random_key{static_cast<std::uint64_t>(number)});
        side sides[2] = {side(0, 60 + random.below(300)), side(1, 60 + random.below(300))};
        line lines[2];
        std::deque<bytes> notes[2], parts[2];  // what each has sent; a deque keeps borrowed bytes in place
        REQUIRE(connect(sides[0], sides[1]));
        time_point now{};
        const auto some = [&] { return random.below(4) == 0 ? 1 : 1 + random.below(200); };
        for (int step = 0; step < 60; ++step) {
            const std::size_t who = random.below(2);
            side& at = sides[who];
            now = now + milliseconds(static_cast<std::int64_t>(random.below(15)));
            switch (random.below(8)) {
                case 0: {
                    bytes& made = notes[who].emplace_back(filled(random.below(101), static_cast<std::size_t>(step)));
                    at.talk.send_note(made);
                    break;
                }
                case 1: {
                    bytes& made = parts[who].emplace_back(filled(random.below(600), static_cast<std::size_t>(step)));
                    at.talk.send_part(made, static_cast<std::uint16_t>(step));
                    break;
                }
                case 2:  // what the kernels hold is lost; a half-open end writes on for a while, into nothing
                    if (random.below(3) != 0) break;
                    if (random.below(2) == 0) write(at, lines[who], some(), now);
                    for (line& each : lines) each.clear();
                    REQUIRE(connect(sides[0], sides[1]));
                    break;
                case 3:
                case 4: write(at, lines[who], some(), now); break;
                default: read(lines[1 - who], at, some(), now);
            }
        }
        settle(sides[0], sides[1], lines[0], lines[1], now);
        for (const std::size_t who : {0U, 1U}) {
            const auto same = [](const std::vector<bytes>& got, const std::deque<bytes>& sent) {
                return std::equal(got.begin(), got.end(), sent.begin(), sent.end());
            };
            INFO("schedule " << number);
            REQUIRE(same(sides[1 - who].in.notes, notes[who]));
            REQUIRE(same(sides[1 - who].in.parts, parts[who]));
            REQUIRE(sides[who].talk.is_idle());
        }
    }
}

namespace {

/// A side that has several lines; all are tried by turns.
struct wide_side {
    wide_side(rank_t self, std::size_t lines, std::size_t window)
        : talk({.self = self,
                .peer = 1 - self,
                .most = {.note_bytes = 100, .fragment_bytes = 40, .part_bytes = 1000},
                .window_bytes = window,
                .lines = lines}) {}
    conversation talk;
    inbox in;

    bool write(std::size_t on, line& to, std::size_t most, time_point now) {
        byte_view pieces[8];
        std::size_t wrote = 0;
        for (const byte_view& each : std::span(pieces, talk.gather(pieces, now, on))) {
            const byte_view some = each.first(std::min(each.size(), most - wrote));
            to.insert(to.end(), some.begin(), some.end());
            wrote += some.size();
        }
        talk.wrote(wrote, on);
        return wrote != 0;
    }
    bool read(std::size_t on, line& from, std::size_t most, time_point now) {
        byte_span room[2];
        std::size_t got = 0;
        for (const byte_span& each : std::span(room, talk.room(room, on)))
            for (std::byte& one : each) {
                if (got == most || from.empty()) break;
                one = from.front();
                from.pop_front();
                ++got;
            }
        talk.arrived(got, in, now, on);
        return got != 0;
    }
};

/// Two sides with several lines between them, and the memory that is lent to them: it is overwritten when it is done.
struct wide_talk {
    wide_talk(std::size_t count, std::size_t window) : lines(count) {
        for (rank_t self = 0; self < 2; ++self) sides.emplace_back(self, count, window);
        for (auto& each : kernels) each.resize(count);
        for (std::size_t on = 0; on < count; ++on) connect(on);
    }
    void connect(std::size_t on) {
        for (auto& each : kernels) each[on].clear();
        for (wide_side& each : sides) each.talk.detach(on);
        const std::uint64_t taken[2] = {sides[0].talk.taken(), sides[1].talk.taken()};
        REQUIRE(sides[0].talk.attach(taken[1], on));
        REQUIRE(sides[1].talk.attach(taken[0], on));
    }
    void send(std::size_t who, bool is_note, const bytes& made) {
        conversation& talk = sides[who].talk;
        auto& [until, lent] = memory[who].emplace_back(0, made);
        until = is_note ? talk.send_note(lent) : talk.send_part(lent, 1);
        (is_note ? notes : parts)[who].push_back(made);
        give_back();
    }
    void give_back() {
        for (const std::size_t who : {0U, 1U})
            for (auto& [until, lent] : memory[who])
                if (sides[who].talk.is_done(until)) std::fill(lent.begin(), lent.end(), std::byte{0xee});
    }
    bool write(std::size_t who, std::size_t on, std::size_t most) {
        return sides[who].write(on, kernels[who][on], most, now);
    }
    bool read(std::size_t who, std::size_t on, std::size_t most) {
        const bool any = sides[who].read(on, kernels[1 - who][on], most, now);
        give_back();
        return any;
    }
    /// Until nothing moves any more on the lines from `first` on.
    void settle(std::size_t first = 0) {
        for (int idle = 0; idle < 3; ++idle) {
            now = now + milliseconds(30);
            for (bool moved = true; moved;) {
                moved = false;
                for (const std::size_t who : {0U, 1U})
                    for (std::size_t on = first; on < lines; ++on) {
                        moved = write(who, on, 1000) || moved;
                        moved = read(1 - who, on, 1000) || moved;
                    }
                if (moved) idle = 0;
            }
        }
    }
    void check_all_came() {
        for (const std::size_t who : {0U, 1U}) {
            REQUIRE(sides[1 - who].in.notes == notes[who]);
            REQUIRE(sides[1 - who].in.parts == parts[who]);
            REQUIRE(sides[who].talk.is_idle());
            for (const auto& [until, lent] : memory[who]) REQUIRE(sides[who].talk.is_done(until));
        }
    }

    std::size_t lines;
    std::vector<wide_side> sides;
    std::vector<line> kernels[2];  ///< by who writes, by line: what is on its way
    std::deque<std::pair<conversation::ticket, bytes>> memory[2];
    std::vector<bytes> notes[2], parts[2];
    time_point now{};
};

}  // namespace

TEST_CASE(
    "over several lines of which any is cut, stalls or falls silent, all that is sent arrives once and in order") {
    const char* const chosen = std::getenv("RILL_TCP_SCHEDULES");
    const long schedules = chosen != nullptr ? std::atol(chosen) : 10'000;
    for (long number = 0; number < schedules; ++number) {
        INFO("schedule " << number);
        random_sequence random(random_key{static_cast<std::uint64_t>(number)});
        wide_talk all(2 + random.below(2), 60 + random.below(600));
        const auto some = [&] { return random.below(4) == 0 ? 1 : 1 + random.below(300); };
        for (int step = 0; step < 90; ++step) {
            const std::size_t who = random.below(2), on = random.below(all.lines);
            all.now = all.now + milliseconds(static_cast<std::int64_t>(random.below(15)));
            switch (random.below(10)) {
                case 0: all.send(who, true, filled(random.below(101), static_cast<std::size_t>(step))); break;
                case 1: all.send(who, false, filled(random.below(600), static_cast<std::size_t>(step))); break;
                case 2:
                    if (random.below(3) != 0) break;
                    if (random.below(2) == 0) all.write(who, on, some());
                    all.connect(on);
                    break;
                case 3:
                    if (random.below(2) == 0) all.sides[who].talk.fall_silent(on);
                    if (random.below(4) == 0) all.sides[who].talk.say_heartbeat(on);
                    break;
                case 4:
                case 5:
                case 6: all.write(who, on, some()); break;
                default: all.read(who, on, some());
            }
        }
        for (std::size_t on = 0; on < all.lines; ++on)
            for (wide_side& each : all.sides) each.talk.say_heartbeat(on);  // no line is silent
        all.settle();
        all.check_all_came();
    }
}

TEST_CASE("what a line has not confirmed that is lost goes on the others") {
    for (const bool is_lost : {true, false}) {
        wide_talk all(2, 4000);
        for (std::size_t i = 0; i < 8; ++i) all.send(0, i % 2 == 0, filled(100 * (i % 2 + 1), i));
        all.write(0, 0, 70);                 // a stretch of which a part is written
        CHECK_FALSE(all.write(0, 1, 1000));  // it has all
        if (is_lost)
            all.sides[0].talk.detach(0);
        else
            all.sides[0].talk.fall_silent(0);
        all.settle(1);
        all.check_all_came();
        if (is_lost) all.connect(0);
        all.settle();  // the first line goes on, behind what the others have carried
        all.send(1, true, text("an answer"));
        all.settle();
        all.check_all_came();
    }
}

TEST_CASE("wrong bytes on one of several lines are an error that names the peer") {
    using enum frame_kind;
    const auto fails_with = [](std::initializer_list<frame_head> heads, const char* text) {
        wide_talk all(2, 100);
        all.send(1, true, bytes(40));
        all.write(1, 1, 1000);
        line sent;
        for (const frame_head& each : heads) {
            bytes raw(frame_head::size_bytes);
            each.write(raw.data());
            sent.insert(sent.end(), raw.begin(), raw.end());
            if (each.kind == stretch) sent.insert(sent.end(), each.size == 16 ? 0 : each.size, std::byte{});
        }
        try {
            while (all.sides[1].read(1, sent, 1000, {})) {
            }
        } catch (const protocol_error& wrong) {
            return std::string(wrong.what()).find(std::string("rank 0 sent rank 1 ") + text) != std::string::npos;
        }
        return false;
    };
    CHECK(fails_with({{.size = 5, .kind = note}}, "a frame of an unknown kind"));
    CHECK(fails_with({{.kind = stretch}}, "a stretch of a wrong size"));
    CHECK(fails_with({{.size = 1 << 17, .kind = stretch}}, "a stretch of a wrong size"));
    CHECK(fails_with({{.size = 1, .kind = stretch, .tag = 1}}, "a stretch of a wrong size"));
    CHECK(fails_with({{.size = 10, .kind = stretch, .value = 1000}}, "a stretch beyond the window"));
    CHECK(fails_with({{.size = 10, .kind = stretch, .value = ~std::uint64_t{0}}}, "a stretch beyond the window"));
    CHECK(fails_with({{.tag = 2}}, "an acknowledgement of what was not sent"));
    CHECK(fails_with({{.value = 1000}}, "an acknowledgement of what was not sent"));
    CHECK(fails_with({{.size = 1}}, "an acknowledgement with content"));
    // What lies at other numbers overlaps: more than the window may hold of it.
    CHECK(fails_with({{.size = 16, .kind = stretch}, {.value = 0}}, "an acknowledgement within a stretch"));
    CHECK(fails_with({{.size = 100, .kind = stretch, .value = 1},
                      {.size = 100, .kind = stretch, .value = 2},
                      {.size = 100, .kind = stretch, .value = 3},
                      {.size = 100, .kind = stretch, .value = 4},
                      {.size = 100, .kind = stretch, .value = 5}},
                     "more than the window holds"));
}

TEST_CASE("a peer cannot have taken less than it acknowledged, or more than was written") {
    side a(0), b(1);
    REQUIRE(connect(a, b));
    line ab, ba;
    time_point now{};
    a.talk.send_note(text("note"));
    settle(a, b, ab, ba, now);
    CHECK(a.talk.acknowledged() == 20);
    CHECK_FALSE(a.talk.attach(19));
    CHECK_FALSE(a.talk.attach(21));
    CHECK(a.talk.attach(20));
}

TEST_CASE("wrong bytes are an error that names the peer") {
    using enum frame_kind;
    const auto fails_with = [](const frame_head& head, const char* text) {
        return failure_of(head).find(text) != std::string::npos;
    };
    CHECK(failure_of({.size = 3, .kind = note}).empty());
    CHECK(fails_with({.size = 101, .kind = note}, "rank 0 sent rank 1 a note that is too long"));
    CHECK(fails_with({.size = 1, .kind = note, .value = 1}, "a note with a value"));
    CHECK(fails_with({.kind = note, .tag = 1}, "a tag where none belongs"));
    CHECK(fails_with({.size = 1, .kind = part, .value = 1001}, "a part that is too long"));
    CHECK(fails_with({.size = 41, .kind = part, .value = 1000}, "a fragment that is too long"));
    CHECK(fails_with({.size = 2, .kind = part, .value = 1}, "a part of a wrong size"));
    CHECK(fails_with({.size = 1, .kind = part_more}, "a fragment of no part"));
    CHECK(fails_with({.size = 1, .kind = goodbye}, "a goodbye with content"));
    CHECK(fails_with({.size = 1}, "an acknowledgement with content"));
    CHECK(fails_with({.value = 1}, "an acknowledgement of what was not sent"));
    CHECK(fails_with({.kind = static_cast<frame_kind>(9)}, "a frame of an unknown kind"));
}
