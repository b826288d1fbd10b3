// The engine of remote transports, on a network in memory: all ranks take turns on one thread.
#include <rill/transport/detail/mail_engine.hpp>

#include "../support/mail_port_laws.hpp"
#include "../support/memory_port.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

using namespace rill;

namespace {

using bytes = std::vector<std::byte>;
constexpr channel on{.context = 7, .tag = 1};

bytes filled(std::size_t size, int value) { return bytes(size, static_cast<std::byte>(value)); }

/// No two stretches of it are alike.
bytes patterned(std::size_t size, std::size_t seed) {
    bytes made(size);
    for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<std::byte>((i + seed) * 2654435761U >> 13U);
    return made;
}

const memory::port::options unasked{.sends_unasked = true};

/// A port that wakes, though nobody else could wake its only thread.
struct waking_port : memory::port {
    using memory::port::look, memory::port::port;
    static constexpr bool wakes = true;
    void look() const {}
    void wake() const noexcept {}
    template <class Lock>
    void await_note(Lock&, deadline) const {}
};
static_assert(mail::MailPort<waking_port>);

/// The engines of some ranks. `step(r)` lets rank r look at its notes.
template <class Port>
struct ranks_of {
    using engine = mail::engine<Port>;
    explicit ranks_of(int count, const memory::port::options& chosen = {.sends_unasked = false}) : net(count) {
        for (rank_t r = 0; r < count; ++r) {
            all.push_back(std::make_shared<engine>(memory::port::place{net, r}));
            all.back()->open(chosen);
            listens.push_back(true);
        }
    }
    engine& operator[](rank_t r) { return *all[static_cast<std::size_t>(r)]; }

    void step(rank_t r) { static_cast<void>((*this)[r].aborted(every_context)); }
    void step_all(int times = 8) {
        for (; times > 0; --times)
            for (rank_t r = 0; r < static_cast<rank_t>(all.size()); ++r) step(r);
    }
    /// Rank 0 sends a note of its message, then rank 1 takes it, then rank 0 sends another one, and so on.
    void take_steps(std::uint64_t id, int steps) {
        for (int i = 0; i < steps; ++i) i % 2 == 0 ? static_cast<void>((*this)[0].is_done(id)) : step(1);
    }
    /// From now on others look at their notes while one waits.
    void attend() {
        net.idle = [this, busy = false](rank_t waits) mutable {
            if (busy) return;
            busy = true;
            for (rank_t r = 0; r < static_cast<rank_t>(all.size()); ++r)
                if (r != waits && listens[static_cast<std::size_t>(r)]) step(r);
            busy = false;
        };
    }

    bool takes(rank_t r, rank_t peer, const bytes& wanted, channel from = on) {
        auto* const got = (*this)[r].receive(std::span(&peer, 1), from, deadline::immediate);
        if (got == nullptr) return false;
        bytes content;
        for (const byte_view piece : got->pieces) content.insert(content.end(), piece.begin(), piece.end());
        (*this)[r].release(*got);
        CHECK(content == wanted);
        return content == wanted;
    }

    memory::network net;
    std::vector<std::shared_ptr<engine>> all;
    std::vector<bool> listens;
};
using ranks = ranks_of<memory::port>;

}  // namespace

TEST_CASE("the port in memory keeps the laws of ports") {
    memory::network net(2);
    const memory::port own({net, 1});
    mail_port_laws(own).check();
}

TEST_CASE("mail: messages of one channel stay in order, small and large, and channels do not wait for each other") {
    ranks of(2);
    const bytes small = filled(100, 1), large = filled(5000, 2), last = filled(10, 3), other = filled(20, 4);
    CHECK(of[0].post(1, on, byte_view(small)) == 0);
    const std::uint64_t id = of[0].post(1, on, byte_view(large));
    CHECK(id != 0);
    of[0].post(1, on, byte_view(last));
    of[0].post(1, {.context = 7, .tag = 2}, byte_view(other));
    of.step(1);
    CHECK(of.takes(1, 0, small));
    CHECK_FALSE(of.takes(1, 0, large));  // announced: now it is asked for
    CHECK_FALSE(of.takes(1, 0, last));
    CHECK(of.takes(1, 0, other, {.context = 7, .tag = 2}));
}

TEST_CASE("mail: a large message is done when its receiver has it, and lies where the receiver wants it") {
    ranks of(2);
    of.attend();
    const bytes large = filled(5000, 2);
    const std::uint64_t id = of[0].post(1, on, byte_view(large));
    of.step_all();
    CHECK_FALSE(of[0].is_done(id));
    bytes target(5000);
    const byte_span there(target);
    auto* const got = of[1].receive_into(0, on, {&there, 1}, deadline::never);
    REQUIRE(got != nullptr);
    CHECK(got->straight);
    CHECK(target == large);
    of[1].release(*got);
    CHECK(of[0].is_done(id));
}

TEST_CASE("mail: a message that is withdrawn is never seen, and one that is asked for is not withdrawn") {
    ranks of(2);
    const bytes large = filled(5000, 2), next = filled(10, 3);
    const std::uint64_t early = of[0].post(1, on, byte_view(large));
    CHECK(of[0].withdraw(early));
    of[0].post(1, on, byte_view(next));
    of.step_all();
    CHECK(of.takes(1, 0, next));

    of.net.holds = true;
    const std::uint64_t late = of[0].post(1, on, byte_view(large));
    of.step(1);
    CHECK_FALSE(of.takes(1, 0, large));
    of.step(0);
    CHECK_FALSE(of[0].withdraw(late));
    of.net.deliver();
    of.step_all();
    CHECK(of.takes(1, 0, large));
    CHECK(of[0].is_done(late));
}

TEST_CASE("mail: a message that is withdrawn while it is asked for arrives empty, and the next one is taken") {
    ranks of(2);
    const bytes large = filled(5000, 2), next = filled(10, 3);
    const std::uint64_t id = of[0].post(1, on, byte_view(large));
    of.step(1);
    CHECK_FALSE(of.takes(1, 0, large));
    CHECK(of[0].withdraw(id));  // the question has not been read
    of[0].post(1, on, byte_view(next));
    of.step_all();
    CHECK(of.takes(1, 0, next));
}

TEST_CASE("mail: a message whose sender ends between its parts is not taken") {
    ranks of(2);
    const bytes first = filled(5000, 1), second = filled(6000, 2);
    byte_pieces both;
    both.push(byte_view(first));
    both.push(byte_view(second));
    of[0].post(1, on, both);
    of.step(1);
    CHECK_FALSE(of.takes(1, 0, first));  // now it is asked for
    of.net.holds = true;
    of.step(0);
    REQUIRE(of.net.sends.size() == 2);
    const memory::network::part arrives = of.net.sends.front();
    of.net.sends.clear();
    of.net.holds = false;
    of.net.send(arrives);
    for (const memory::network::part& each : of.net.receives) each.ends->done = true;
    of.net.receives.clear();
    CHECK_FALSE(of.takes(1, 0, first));
}

TEST_CASE("mail: after a deadline the targets are the caller's again, and the message is not lost") {
    ranks of(2);
    const bytes large = filled(5000, 2);
    of.net.holds = true;
    of[0].post(1, on, byte_view(large));
    bytes target(5000);
    const byte_span there(target);
    of.step(1);
    CHECK(of[1].receive_into(0, on, {&there, 1}, of[1].now() + milliseconds(50)) == nullptr);
    of.step(0);
    of.net.deliver();
    CHECK(target == bytes(5000));
    of.step_all();
    CHECK(of.takes(1, 0, large));
}

TEST_CASE("mail: control overtakes a large message that waits") {
    ranks of(2);
    of.net.holds = true;
    const bytes large = filled(1 << 20, 2);
    of[0].post(1, on, byte_view(large));
    of.step(1);
    CHECK_FALSE(of.takes(1, 0, large));
    of.step(0);  // its part is under way
    of.attend();
    of[0].abort({.context = 7, .culprit = 0, .reason = "enough"});
    of.step(1);
    CHECK(of[1].aborted(7)->reason == "enough");
    CHECK_THROWS_AS(of.takes(1, 0, large), error);
}

TEST_CASE("mail: rank 0 says which of two aborts was the first; where it is silent, the aborting rank decides") {
    ranks of(3);
    of.attend();
    const abort_notice second = of[2].abort({.context = 7, .culprit = 2, .reason = "two"});
    const abort_notice first = of[1].abort({.context = 7, .culprit = 1, .reason = "one"});
    CHECK(second.culprit == 2);
    CHECK(first.culprit == 2);
    of.listens[0] = false;
    CHECK(of[1].abort({.context = 8, .culprit = 1, .reason = "silence"}).culprit == 1);
    of.step(2);
    CHECK(of[2].aborted(8)->reason == "silence");
}

TEST_CASE("mail: where rank 0 is silent, any rank that knows what ended a context tells it to one that asks") {
    ranks of(3);
    of.attend();
    of[0].abort({.context = 7, .culprit = 0, .reason = "one"});
    of.step(2);
    of.net.notes[1].clear();
    of.listens[0] = false;
    CHECK(of[1].abort({.context = 7, .culprit = 1, .reason = "two"}).culprit == 0);
}

TEST_CASE("mail: a rank passes on what has ended others to one that does not hear it of those that know it first") {
    ranks of(4);
    std::uint64_t ended = 7;
    std::string reason = "one";
    SUBCASE("an abort") { of[0].abort({.context = 7, .culprit = 0, .reason = "one"}); }
    SUBCASE("a loss") {
        ended = every_context;
        reason = "rank 3 has gone without a farewell";
        of.net.losses[0].push_back(3);
        of.step(0);
    }
    of.net.notes[2].clear();
    of.step(1);
    const auto heard = of[2].aborted(ended);
    REQUIRE(heard.has_value());
    CHECK(heard->reason == reason);
    of.step_all();
    for (const auto& each : of.net.notes) CHECK(each.empty());
}

TEST_CASE("mail: that a rank has gone which told of a failure is told to those that it has not told") {
    ranks of(3);
    of[0].abort({.context = every_context, .culprit = 0, .reason = "one"});
    of.step(1);
    of.net.notes[2].clear();
    of.net.losses[1].push_back(0);
    of.step_all();
    const auto heard = of[2].aborted(every_context);
    REQUIRE(heard.has_value());
    CHECK(heard->reason == "rank 0 has gone without a farewell");
    CHECK(of[1].aborted(every_context)->reason == "one");
}

TEST_CASE("mail: that a rank has gone is known even where telling it to the others fails") {
    ranks of(3);
    of.net.losses[1].push_back(2);
    of.net.unreachable = 0;
    CHECK_THROWS_WITH_AS(of.step(1), doctest::Contains("cannot be reached"), memory::port::library_error);
    const auto known = of[1].aborted(every_context);
    REQUIRE(known.has_value());
    CHECK(known->culprit == 2);
}

TEST_CASE(
    "mail: what ends all contexts ends none of a rank that monitors, whether it was told before or is told later") {
    mail::control of;
    of.learn(mail::notice_of_loss(2));
    REQUIRE(of.find_notice(on) != nullptr);
    of.begin_to_monitor();
    CHECK(of.find_notice(on) == nullptr);
    of.reports.push_back({.source = 1, .notice = mail::notice_of_loss(3)});
    of.learn(mail::notice_of_loss(3));
    CHECK(of.find_notice(on) == nullptr);
    CHECK(of.reports.empty());
    of.learn({.context = on.context, .culprit = 1, .reason = "one"});
    REQUIRE(of.find_notice(on) != nullptr);
    CHECK(of.find_notice(on)->reason == "one");
}

TEST_CASE(
    "mail: memory that a port uses is given back when it no longer does, also where the network fails meanwhile") {
    ranks_of<waking_port> of(2);
    const bytes large = filled(5000, 2);
    const std::uint64_t id = of[0].post(1, on, byte_view(large));
    of.net.holds = true;
    of.step(1);
    CHECK_FALSE(of.takes(1, 0, large));
    of.step(0);
    of.net.idle = [&, failures = 0](rank_t) mutable {
        if (++failures <= 3) throw memory::port::library_error(0, "broken");
        of.net.deliver();
    };
    of[0].settle_sent(id, 7);
    CHECK(of.net.sends.empty());
    of.net.idle = nullptr;
    CHECK(of.takes(1, 0, large));
}

TEST_CASE_TEMPLATE("mail: an abort ends in time where the network fails at every look", Thrown,
                   memory::port::library_error, std::bad_alloc) {
    ranks_of<waking_port> of(2);
    of.net.idle = [](rank_t) {
        if constexpr (std::is_same_v<Thrown, std::bad_alloc>)
            throw Thrown();
        else
            throw Thrown(0, "broken");
    };
    CHECK(of[1].abort({.context = 7, .culprit = 1, .reason = "one"}).reason == "one");
}

TEST_CASE("mail: mailboxes are bounded, and credit returns with what is taken") {
    ranks of(2);
    const bytes most = filled(1 << 20, 1);
    buffer first(most.begin(), most.end()), second(most.begin(), most.end());
    CHECK(of[0].post(1, on, first, deadline::immediate));
    CHECK_FALSE(of[0].post(1, on, second, deadline::immediate));
    of.step_all();
    CHECK_FALSE(of.takes(1, 0, most));
    of.step_all();
    CHECK(of.takes(1, 0, most));
    of.step_all();
    CHECK(of[0].post(1, on, second, deadline::immediate));
}

TEST_CASE("mail: who waits for a rank that has left is told so, once it has taken what that rank had said") {
    ranks of(3, {.mailbox_bytes = 10'000, .sends_unasked = false});
    of.attend();
    const bytes small = filled(100, 1), large = filled(5000, 2);
    const rank_t left = 0, both[] = {0, 2};
    of[0].post(1, on, byte_view(small));
    of.net.goodbyes[1].push_back(left);
    of.listens[0] = false;
    const std::uint64_t never_taken = of[1].post(left, on, byte_view(large));
    buffer first(9000), second(9000);
    CHECK(of[1].post(left, on, first, deadline::immediate));

    auto* const got = of[1].receive({&left, 1}, on, deadline::never);
    REQUIRE(got != nullptr);
    of[1].release(*got);
    const auto text = doctest::Contains("rank 0 has left, and rank 1 waits for it");
    bytes target(5000);
    const byte_span there(target);
    try {
        of[1].receive({&left, 1}, on, deadline::never);
        FAIL("nothing was thrown");
    } catch (const peer_failure& caught) {
        CHECK(caught.what() == text);
        CHECK(caught.notice().context == on.context);
    }
    CHECK_THROWS_WITH_AS(of[1].receive_latest({&left, 1}, on, deadline::never), text, peer_failure);
    CHECK_THROWS_WITH_AS(of[1].receive_into(left, on, {&there, 1}, deadline::never), text, peer_failure);
    CHECK_THROWS_WITH_AS(of[1].await(never_taken, on, deadline::never), text, peer_failure);
    CHECK_THROWS_WITH_AS(of[1].post(left, on, second, deadline::never), text, peer_failure);
    CHECK(of[1].inquire(left, 7, 5, deadline::never)->kind == operation::departure);
    for (const deadline until : {deadline::immediate, deadline(memory::port::now() + milliseconds(20))})
        CHECK(of[1].receive({&left, 1}, on, until) == nullptr);
    of.net.idle = [&](rank_t) { of[2].post(1, on, byte_view(small)); };
    auto* const other = of[1].receive(both, on, deadline::never);
    CHECK(other->source == 2);
    of[1].release(*other);
}

TEST_CASE("mail: of a rank that has left, the later call that it is known to have entered is told") {
    ranks of(2);
    of.attend();
    of[0].announce(7, {.number = 6, .kind = operation::barrier});
    CHECK(of[1].inquire(0, 7, 5, memory::port::now() + milliseconds(20))->number == 6);
    of.net.goodbyes[1].push_back(0);
    of.listens[0] = false;
    CHECK(of[1].inquire(0, 7, 7, deadline::never)->kind == operation::departure);
    for (const std::uint64_t number : {5U, 6U}) {
        const auto said = of[1].inquire(0, 7, number, deadline::never);
        CHECK(said->number == 6);
        CHECK(said->kind == operation::barrier);
    }
}

TEST_CASE("mail: all leave together; a port that has ended throws") {
    ranks of(2);
    of.attend();
    of[1].leave();
    of[0].leave();
    CHECK_FALSE(of[0].await_all_left().has_value());
    CHECK_FALSE(of[1].await_all_left().has_value());
    CHECK(of[1].end());
    CHECK_FALSE(of[1].end());
    CHECK_THROWS_AS(of.takes(1, 0, {}), memory::port::library_error);
}

TEST_CASE("mail: of any number of ranks, none has seen all leave before the last one does") {
    for (rank_t count = 2; count <= 9; ++count)
        for (rank_t waits = 0; waits < count; ++waits)
            for (rank_t last = 0; last < count; ++last) {
                if (last == waits) continue;
                ranks of(count);
                of.attend();
                bool has_left = false;
                of.net.idle = [&, go_on = of.net.idle, times = 0](rank_t rank) mutable {
                    go_on(rank);
                    if (++times != 30) return;
                    has_left = true;
                    of[last].leave();
                };
                for (rank_t each = 0; each < count; ++each)
                    if (each != last) of[each].leave();
                CHECK_FALSE(of[waits].await_all_left().has_value());
                CHECK(has_left);
            }
}

TEST_CASE("mail: an immediate receive finds a message behind any number of others") {
    for (int before = 0; before < 300; ++before) {
        CAPTURE(before);
        ranks of(2);
        const bytes wanted = filled(10, 3), other = filled(20, 4);
        for (int i = 0; i < before; ++i) of[0].post(1, {.context = 7, .tag = 2}, byte_view(other));
        of[0].post(1, on, byte_view(wanted));
        CHECK(of.takes(1, 0, wanted));
    }
}

TEST_CASE("mail: a large message that goes unasked comes in order and whole, in the pieces that were sent") {
    ranks of(2, unasked);
    for (const std::size_t size : {1025U, 2047U, 2048U, 5000U, 100'000U})
        for (const std::size_t edge : {std::size_t{0}, std::size_t{96}, std::size_t{1000}, size - 1}) {
            CAPTURE(size);
            CAPTURE(edge);
            const bytes small = filled(100, 1), large = patterned(size, edge), last = filled(10, 3);
            byte_pieces pieces(byte_view(large).first(edge));
            pieces.push(byte_view(large).subspan(edge));
            of[0].post(1, on, byte_view(small));
            const std::uint64_t id = of[0].post(1, on, pieces);
            of[0].post(1, on, byte_view(last));
            of.step(1);
            CHECK(of.takes(1, 0, small));
            CHECK_FALSE(of.takes(1, 0, last));  // the large one comes first
            for (int i = 0; i < 200 && !of[0].is_done(id); ++i) of.step(0);
            CHECK(of[0].is_done(id));  // though nobody has asked for it
            of.step(1);
            CHECK(of.takes(1, 0, large));
            CHECK(of.takes(1, 0, last));
        }
}

TEST_CASE("mail: messages that go unasked to several peers take turns") {
    ranks of(3, unasked);
    const bytes one = patterned(10'000, 1), two = patterned(10'000, 2), three = patterned(3000, 3);
    const std::uint64_t id = of[0].post(1, on, byte_view(one));
    of[0].post(1, on, byte_view(three));
    of[0].post(2, on, byte_view(two));
    const auto notes_to = [&](rank_t r) { return of.net.notes[static_cast<std::size_t>(r)].size(); };
    const std::size_t announced = notes_to(1) - notes_to(2);
    CHECK(announced == 1);
    while (notes_to(2) < 9) {
        REQUIRE_FALSE(of[0].is_done(id));
        CHECK(notes_to(1) - announced == notes_to(2));
    }
    of.step_all();
    CHECK(of.takes(1, 0, one));
    CHECK(of.takes(1, 0, three));
    CHECK(of.takes(2, 0, two));
}

TEST_CASE("mail: what goes unasked is bounded by the mailbox; beyond it messages wait until they are asked for") {
    ranks of(2, {.mailbox_bytes = 10'000, .sends_unasked = true});
    const bytes large = patterned(4000, 1), larger = patterned(10'001, 2);
    const std::uint64_t first = of[0].post(1, on, byte_view(large)), second = of[0].post(1, on, byte_view(large));
    const std::uint64_t third = of[0].post(1, on, byte_view(large)), fourth = of[0].post(1, on, byte_view(larger));
    of.step_all(40);
    CHECK(of[0].is_done(first));
    CHECK(of[0].is_done(second));
    CHECK_FALSE(of[0].is_done(third));
    CHECK_FALSE(of[0].is_done(fourth));
    CHECK(of.takes(1, 0, large));
    CHECK(of.takes(1, 0, large));  // now there is credit
    of.step_all();
    const std::uint64_t late = of[0].post(1, on, byte_view(large));
    of.step_all(40);
    CHECK(of[0].is_done(late));
    for (const bytes& each : {large, larger}) {
        CHECK_FALSE(of.takes(1, 0, each));
        of.step_all();
        CHECK(of.takes(1, 0, each));
    }
    CHECK(of.takes(1, 0, large));
    buffer handed(large.begin(), large.end());
    CHECK(of[0].post(1, on, handed, deadline::immediate));  // messages that are handed over have a bound of their own
}

TEST_CASE(
    "mail: a message that goes unasked is withdrawn at any piece, its memory is free at once, and credit returns") {
    for (int steps = 0; steps < 24; ++steps) {
        CAPTURE(steps);
        ranks of(2, {.mailbox_bytes = 10'000, .sends_unasked = true});
        bytes large = patterned(10'000, 1);
        const bytes next = patterned(9000, 2);
        const std::uint64_t id = of[0].post(1, on, byte_view(large));
        of.take_steps(id, steps);
        const bool was_done = of[0].is_done(id);
        CHECK(of[0].withdraw(id));
        std::fill(large.begin(), large.end(), std::byte{99});
        of.step_all(40);
        if (was_done) CHECK(of.takes(1, 0, patterned(10'000, 1)));
        of.step_all();
        const std::uint64_t after = of[0].post(1, on, byte_view(next));
        of.step_all(40);
        CHECK(of[0].is_done(after));  // not announced: there is room
        CHECK(of.takes(1, 0, next));
    }
}

TEST_CASE("mail: a channel that is closed stops the messages that are on their way to it, at any piece") {
    for (int steps = 0; steps < 24; ++steps) {
        CAPTURE(steps);
        ranks of(2, {.mailbox_bytes = 10'000, .sends_unasked = true});
        const bytes large = patterned(10'000, 1), next = patterned(9000, 2);
        const channel other{.context = 8, .tag = 1};
        const std::uint64_t id = of[0].post(1, on, byte_view(large));
        of.take_steps(id, steps);
        of[1].close_context(on.context);
        of.step_all(40);
        CHECK(of[0].is_done(id));
        const std::uint64_t after = of[0].post(1, other, byte_view(next));
        of.step_all(40);
        CHECK(of[0].is_done(after));
        CHECK(of.takes(1, 0, next, other));
    }
}

TEST_CASE("mail: an abort ends the wait for a message that goes unasked, at any piece, and the next context works") {
    for (int steps = 0; steps < 24; ++steps) {
        CAPTURE(steps);
        ranks of(2, unasked);
        of.attend();
        const bytes large = patterned(10'000, 1);
        const channel other{.context = 8, .tag = 1};
        bytes target = filled(10'000, 7);
        const byte_span there(target);
        const std::uint64_t id = of[0].post(1, on, byte_view(large));
        of.take_steps(id, steps);
        of[0].abort({.context = 7, .culprit = 0, .reason = "enough"});
        of[0].settle_sent(id, on.context);
        of.step(1);
        CHECK_THROWS_AS(static_cast<void>(of[1].receive_into(0, on, {&there, 1}, deadline::never)), error);
        CHECK(target == filled(10'000, 7));
        of[0].post(1, other, byte_view(large));
        of.step_all(40);
        CHECK(of.takes(1, 0, large, other));
    }
}

TEST_CASE("mail: a message that goes unasked is received into targets, or later where the deadline has passed") {
    ranks of(2, unasked);
    const bytes large = patterned(5000, 1);
    of[0].post(1, on, byte_view(large));
    bytes target(5000);
    const byte_span there(target);
    CHECK(of[1].receive_into(0, on, {&there, 1}, of[1].now() + milliseconds(50)) == nullptr);
    CHECK(target == bytes(5000));
    of.attend();
    auto* const got = of[1].receive_into(0, on, {&there, 1}, deadline::never);
    REQUIRE(got != nullptr);
    CHECK_FALSE(got->straight);
    of[1].release(*got);
    of[1].expect(0, on, {&there, 1});
    of[0].post(1, on, byte_view(large));
    of.step_all(40);
    of[1].forget(on);
    CHECK(of.takes(1, 0, large));
}

TEST_CASE("mail: the latest of several messages that go unasked is taken, the others are dropped") {
    ranks of(2, unasked);
    const bytes first = patterned(5000, 1), second = patterned(5000, 2);
    of[0].post(1, on, byte_view(first));
    of[0].post(1, on, byte_view(second));
    const rank_t peer = 0;
    of.step(1);
    CHECK(of[1].receive_latest({&peer, 1}, on, deadline::immediate) == nullptr);
    of.step_all(40);
    auto* const got = of[1].receive_latest({&peer, 1}, on, deadline::immediate);
    REQUIRE(got != nullptr);
    CHECK(bytes(got->pieces[0].begin(), got->pieces[0].end()) == second);
    of[1].release(*got);
    CHECK_FALSE(of.takes(1, 0, first));
}

TEST_CASE("mail: an endpoint that ends leaves nothing of a half-sent message to the next one") {
    for (int steps = 0; steps < 24; ++steps) {
        ranks of(2, unasked);
        const bytes large = patterned(10'000, 1);
        const std::uint64_t id = of[0].post(1, on, byte_view(large));
        of.take_steps(id, steps);
        for (auto& each : of.all) each->close();
        for (auto& each : of.all) each->open(unasked);
        of[0].post(1, on, byte_view(large));
        of.step_all(40);
        CHECK(of.takes(1, 0, large));
        CHECK_FALSE(of.takes(1, 0, large));
    }
}

namespace {

/// Rank 0 sends rank 1 a note that its engine would not send.
void send_note(ranks& of, mail::envelope head, const bytes& content) {
    head.incarnation = 1;
    head.size = static_cast<std::uint32_t>(content.size());
    bytes all(sizeof head + content.size());
    std::memcpy(all.data(), &head, sizeof head);
    if (!content.empty()) std::memcpy(all.data() + sizeof head, content.data(), content.size());
    static_cast<void>(of[0].through().send_note(all.data(), all.size(), 1));
}
/// The content of the note that begins a message of one piece of so many bytes.
bytes beginning_of(std::uint64_t size) {
    bytes made(mail::announcement::table);
    std::memcpy(made.data(), &size, sizeof size);
    return made;
}

}  // namespace

TEST_CASE("mail: no memory is made for more unasked bytes than the mailbox has room for") {
    using mail::note;
    ranks of(2, {.mailbox_bytes = 10'000, .sends_unasked = true});
    send_note(of, {.context = 7, .id = 1, .tag = 1, .kind = note::begin, .pieces = 1},
              beginning_of(std::uint64_t{1} << 48U));
    CHECK_THROWS_AS(of.step(1), protocol_error);
    send_note(of, {.context = 7, .id = 2, .tag = 1, .kind = note::begin, .pieces = 1}, beginning_of(6000));
    CHECK_NOTHROW(of.step(1));
    send_note(of, {.context = 7, .id = 3, .tag = 1, .kind = note::begin, .pieces = 1}, beginning_of(6000));
    CHECK_THROWS_AS(of.step(1), protocol_error);
}

TEST_CASE("mail: notes that continue no message, or more than was begun, are refused") {
    using mail::note;
    ranks of(2, unasked);
    const bytes beginning = beginning_of(2000);
    send_note(of, {.id = 5, .kind = note::go_on}, filled(10, 1));
    CHECK_THROWS_AS(of.step(1), protocol_error);
    send_note(of, {.context = 7, .id = 5, .tag = 1, .kind = note::begin, .pieces = 1}, beginning);
    send_note(of, {.id = 5, .kind = note::go_on}, filled(900, 1));
    CHECK_NOTHROW(of.step(1));
    send_note(of, {.id = 5, .kind = note::go_on}, {});
    CHECK_THROWS_AS(of.step(1), protocol_error);
    send_note(of, {.id = 5, .kind = note::go_on}, filled(1000, 1));
    send_note(of, {.id = 5, .kind = note::go_on}, filled(101, 1));
    CHECK_THROWS_AS(of.step(1), protocol_error);
    send_note(of, {.context = 100, .kind = note::credit}, {});
    CHECK_THROWS_AS(of.step(1), protocol_error);
}
