// When a machine of a delivery calls a link silent.
#include <rill/collective/detail/delivery_machine.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/backup_tree.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using rill::duration;
using rill::milliseconds;
using rill::rank_t;
using rill::time_point;
using rill::detail::delivery_kind;
using rill::detail::delivery_note;
using rill::topology::backup_tree;

namespace {

using machine = rill::detail::delivery_machine<backup_tree>;
constexpr std::size_t chunk = std::size_t{1} << 15;
constexpr int chunks = 50;

/// A child of the root, which sends the root its chunks in each operation.
struct child {
    static constexpr int size = 3;
    static constexpr rank_t self = 1, root = 0, brother = 2;

    machine at{backup_tree{2}, size, self};
    std::uint64_t operation = 0;
    time_point now{};

    void begin() {
        now = now + milliseconds(100);
        at.begin(++operation, now);
        for (std::size_t i = 0; i < chunks; ++i) at.post(root, i, chunk, now);
        at.outbox().clear();
    }
    /// Until then nothing comes. Returns how many messages are sent by the other child meanwhile.
    int wait_until(time_point then) {
        int by_brother = 0;
        for (;;) {
            for (const auto& letter : at.outbox()) by_brother += letter.to == brother ? 1 : 0;
            at.outbox().clear();
            if (at.next_due() > then) break;
            now = std::max(now, at.next_due());
            at.pass(now);
        }
        now = then;
        return by_brother;
    }
    void acknowledge(int sequence) {
        at.on({delivery_kind::received, self, root, static_cast<std::uint32_t>(sequence), operation}, root, now);
    }
    /// The root acknowledges the first chunk after `first`, the others one by one.
    int run(duration first, duration each) {
        begin();
        int by_brother = wait_until(now + first);
        for (int i = 0; i < chunks; ++i) {
            acknowledge(i);
            by_brother += wait_until(now + each);
        }
        at.on({delivery_kind::over, root, self, 0, operation}, root, now);
        at.outbox().clear();
        return by_brother;
    }
};

}  // namespace

TEST_CASE("a link that acknowledges one chunk after the other is soon called silent, however much is on the way") {
    child one;
    for (int i = 0; i < 20; ++i) CHECK(one.run(milliseconds(8), milliseconds(2)) == 0);
    one.begin();
    const duration patience = one.at.next_due() - one.now;
    CHECK(patience > milliseconds(8));
    CHECK(patience < milliseconds(20));  // the chunks need 100 ms
    CHECK(one.wait_until(one.at.next_due()) == chunks);
    CHECK(one.at.is_silent(child::root));
}

TEST_CASE("a link that falls silent in the middle of an operation is called so as soon") {
    child one;
    for (int i = 0; i < 20; ++i) one.run(milliseconds(8), milliseconds(2));
    one.begin();
    one.wait_until(one.now + milliseconds(8));
    for (int i = 0; i < 30; ++i) {
        one.acknowledge(i);
        one.wait_until(one.now + milliseconds(2));
    }
    CHECK(one.at.next_due() - one.now < milliseconds(20));
    CHECK(one.wait_until(one.at.next_due()) == chunks - 30);
}

TEST_CASE("a link that becomes slower for good is called silent a few times, and then no more") {
    child one;
    for (int i = 0; i < 20; ++i) one.run(milliseconds(8), milliseconds(2));
    int alarms = 0, last = 0;
    for (int i = 0; i < 40; ++i)
        if (one.run(milliseconds(80), milliseconds(2)) > 0) ++alarms, last = i;
    CHECK(alarms > 0);
    CHECK(last < 8);
    CHECK_FALSE(one.at.is_silent(child::root));
}

TEST_CASE("under a load that was never measured a link has the first patience at least") {
    child one;
    for (int i = 0; i < 5; ++i) {  // barriers
        one.now = one.now + milliseconds(100);
        one.at.begin(++one.operation, one.now);
        one.at.post(child::root, 0, 96, one.now);
        one.now = one.now + milliseconds(1);
        one.acknowledge(0);
        one.at.on({delivery_kind::over, child::root, child::self, 0, one.operation}, child::root, one.now);
    }
    one.begin();
    CHECK(one.at.next_due() - one.now >= rill::detect{}.first);
}

TEST_CASE("what goes by way of a rank takes the next way as soon as the link to that rank is silent") {
    constexpr int size = 4;
    const backup_tree shape{3};
    machine at{shape, size, 0};
    time_point now{};
    const auto pass = [&](duration until) {
        std::vector<rank_t> ways;  // of what is for rank 1
        for (const time_point end = time_point{} + until; at.next_due() <= end;) {
            now = std::max(now, at.next_due());
            at.pass(now);
            for (const auto& letter : at.outbox())
                if (letter.note.target == 1) ways.push_back(letter.to);
            at.outbox().clear();
        }
        return ways;
    };
    at.begin(1, now);
    at.post(1, 0, 96, now);
    at.outbox().clear();
    const rank_t first = shape.detour(size, 0, 1, 0), second = shape.detour(size, 0, 1, 1);
    CHECK(pass(milliseconds(500)) == std::vector<rank_t>{first});
    at.post(first, 1, 96, time_point{} + milliseconds(100));  // due at 600 ms, the detour at 1,000
    CHECK(pass(milliseconds(600)) == std::vector<rank_t>{second});
}
