#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/transport/detail/tcp_liveness.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using enum liveness_step;

constexpr time_point at(std::int64_t ms) { return time_point{} + milliseconds(ms); }

/// What is told until `end`, in ms, by a rank that is never late; its heartbeats are left out.
std::vector<std::pair<std::int64_t, liveness_step>> told(liveness& of, std::int64_t end) {
    std::vector<std::pair<std::int64_t, liveness_step>> steps;
    while (of.due() <= deadline(at(end))) {
        const time_point now = of.due().at;
        for (auto step = of.tick(now); step != nothing; step = of.tick(now))
            if (step != heartbeat) steps.emplace_back(now.ns / 1'000'000, step);
    }
    return steps;
}

}  // namespace

TEST_CASE("a silent peer is dialled after half the patience, and is gone at its end") {
    liveness of(milliseconds(800), at(0));
    const std::vector<std::pair<std::int64_t, liveness_step>> expected = {{400, dial}, {800, gone}};
    CHECK(told(of, 10'000) == expected);
    CHECK(of.due().is_never());
    of.heard(at(900), false);
    CHECK(of.tick(at(20'000)) == nothing);
    CHECK(of.due().is_never());
}

TEST_CASE("a heartbeat is due only where nothing was written for an interval") {
    liveness of(milliseconds(800), at(0));
    CHECK(of.tick(at(99)) == nothing);
    CHECK(of.tick(at(100)) == heartbeat);
    CHECK(of.tick(at(100)) == nothing);
    CHECK(of.tick(at(199)) == nothing);
    for (std::int64_t now = 200; now < 2000; now += 50) {
        of.spoke(at(now - 1), false);
        of.heard(at(now), false);
        CHECK(of.tick(at(now)) == nothing);
    }
    CHECK(of.due() == deadline(at(2049)));
}

TEST_CASE("a word of the peer begins the patience anew") {
    liveness of(milliseconds(800), at(0));
    CHECK(told(of, 799).size() == 1);
    of.heard(at(799), false);
    const std::vector<std::pair<std::int64_t, liveness_step>> expected = {{1199, dial}};
    CHECK(told(of, 1200) == expected);
}

TEST_CASE("a rank that was stopped owes a heartbeat and does not blame its peer") {
    liveness of(milliseconds(800), at(0));
    CHECK(told(of, 390).empty());
    CHECK(of.tick(at(60'000)) == heartbeat);
    CHECK(of.tick(at(60'000)) == nothing);
    const std::vector<std::pair<std::int64_t, liveness_step>> expected = {{60'400, dial}, {60'800, gone}};
    CHECK(told(of, 61'000) == expected);
}

TEST_CASE("lateness of an interval is no stop") {
    liveness of(milliseconds(800), at(0));
    of.spoke(at(390), false);
    CHECK(of.due() == deadline(at(400)));
    CHECK(of.tick(at(500)) == dial);
    liveness late(milliseconds(800), at(0));
    late.spoke(at(390), false);
    CHECK(late.tick(at(501)) == heartbeat);
    CHECK(late.due() == deadline(at(601)));
}

TEST_CASE("a peer that owes an acknowledgement is dialled after 150 ms, once, until it speaks or is met again") {
    liveness of(seconds(10), at(0));
    of.spoke(at(1000), true);
    of.spoke(at(1100), true);
    CHECK(of.due() == deadline(at(1150)));
    CHECK(of.tick(at(1149)) == nothing);
    CHECK(of.tick(at(1150)) == dial);
    CHECK(of.due() > deadline(at(2000)));
    of.met(at(1400));
    CHECK(of.due() == deadline(at(1400 + 240)));  // twice as long, since nothing was answered
    CHECK(of.tick(at(1640)) == dial);
    of.heard(at(1700), false);
    CHECK(of.due() > deadline(at(2000)));
}

TEST_CASE("a peer that takes long to acknowledge is given four times as long; when it is quick again, less and less") {
    liveness of(seconds(100), at(0));
    of.spoke(at(0), true);
    of.heard(at(100), true);
    CHECK(of.due() == deadline(at(100 + 400)));
    of.heard(at(300), true);
    CHECK(of.due() == deadline(at(300 + 800)));
    for (std::int64_t i = 1; i <= 100; ++i) of.heard(at(300 + i), true);
    CHECK(of.due() == deadline(at(400 + 150)));
    of.heard(at(401), false);
    CHECK(of.due() > deadline(at(5000)));
}

TEST_CASE("two live ranks never lose each other, whatever stops either of them for up to a quarter of the patience") {
    for (std::uint64_t number = 0; number < 200; ++number) {
        random_sequence random(random_key{number});
        liveness ranks[2] = {{milliseconds(800), at(0)}, {milliseconds(800), at(0)}};
        std::int64_t stopped_until[2] = {0, 0};
        std::vector<std::int64_t> words[2];  // arrival times of what each will hear
        for (std::int64_t now = 1; now < 5000; ++now)
            for (const std::size_t who : {0U, 1U}) {
                if (now < stopped_until[who]) continue;
                if (random.below(300) == 0) stopped_until[who] = now + static_cast<std::int64_t>(random.below(200));
                while (!words[who].empty() && words[who].front() <= now) {
                    ranks[who].heard(at(now), false);
                    words[who].erase(words[who].begin());
                }
                for (auto step = ranks[who].tick(at(now)); step != nothing; step = ranks[who].tick(at(now))) {
                    REQUIRE(step == heartbeat);
                    words[1 - who].push_back(now + 10);
                }
            }
    }
}

TEST_CASE("an endless patience saturates, and one without length is refused") {
    liveness of(duration(INT64_MAX), at(0));
    CHECK_FALSE(of.due().is_never());
    CHECK(of.tick(at(1'000'000'000)) == nothing);
    CHECK_THROWS_WITH_AS(liveness(nanoseconds(999'999), at(0)), doctest::Contains("at least 1 ms"), contract_violation);
}
