// The engine of remote transports, on a network in memory: all ranks take turns on one thread.
#include <rill/transport/detail/mail_engine.hpp>

#include "../support/mail_port_laws.hpp"
#include "../support/memory_port.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

using namespace rill;

namespace {

using engine = mail::engine<memory::port>;
using bytes = std::vector<std::byte>;
constexpr channel on{.context = 7, .tag = 1};

bytes filled(std::size_t size, int value) { return bytes(size, static_cast<std::byte>(value)); }

/// The engines of some ranks. `step(r)` lets rank r look at its notes.
struct ranks {
    explicit ranks(int count) : net(count) {
        for (rank_t r = 0; r < count; ++r) {
            all.push_back(std::make_shared<engine>(memory::port::place{net, r}));
            all.back()->open({});
        }
    }
    engine& operator[](rank_t r) { return *all[static_cast<std::size_t>(r)]; }

    void step(rank_t r) { static_cast<void>((*this)[r].aborted(every_context)); }
    void step_all(int times = 8) {
        for (; times > 0; --times)
            for (rank_t r = 0; r < static_cast<rank_t>(all.size()); ++r) step(r);
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
    std::array<bool, 4> listens{true, true, true, true};
};

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

TEST_CASE("mail: all leave together; a port that has ended throws") {
    ranks of(2);
    of.attend();
    of[1].leave(false);
    of[0].leave(false);
    CHECK_FALSE(of[0].await_all_left().has_value());
    CHECK_FALSE(of[1].await_all_left().has_value());
    CHECK(of[1].end());
    CHECK_FALSE(of[1].end());
    CHECK_THROWS_AS(of.takes(1, 0, {}), memory::port::library_error);
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
