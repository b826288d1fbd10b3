#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim = rill::simulated;
namespace faults = rill::faults;
using rill::deadline;
using rill::microseconds;
using rill::milliseconds;

namespace {

constexpr rill::channel on{.context = 0, .tag = 7};

/// Rank 0 sends the numbers 0 ... count - 1 to rank 1, one each microsecond: those that arrive.
std::vector<int> numbers_through(const rill::fault_plan& plan, int count = 10, sim::report* seen = nullptr) {
    std::vector<int> arrived;
    const sim::report all = sim::run(2, {.latency = {}, .bandwidth = 0, .faults = plan}, [&](sim::endpoint& net) {
        if (net.rank() == 0)
            for (int i = 0; i < count; ++i) {
                net.post(1, on, rill::buffer(1, static_cast<std::byte>(i)));
                net.sleep_until({(i + 1) * 1000});
            }
        else
            while (const auto m = net.receive(0, on, deadline{{count * 1000 + 1000}}))
                arrived.push_back(std::to_integer<int>(m->pieces()[0][0]));
    });
    if (seen != nullptr) *seen = all;
    return arrived;
}

}  // namespace

TEST_CASE("a cut link loses everything until it is healed, by time or by number") {
    sim::report seen;
    CHECK(numbers_through({{faults::cut(0, 1).at(microseconds(3)), faults::heal(0, 1).at(microseconds(6))}}, 10,
                          &seen) == std::vector<int>{0, 1, 2, 6, 7, 8, 9});
    CHECK(seen.links[0].messages == 10);
    CHECK(seen.links[0].lost == 3);
    CHECK(numbers_through({{faults::cut(0, 1).after(8)}}) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(numbers_through({{faults::cut(1, 0)}}).size() == 10);
}

TEST_CASE("loss and duplication come with their probability, the same in each run") {
    const rill::fault_plan lossy{.faults = {faults::lose(0.25)}, .seed = 3};
    const auto once = numbers_through(lossy, 250);
    CHECK(once.size() == doctest::Approx(187).epsilon(0.1));
    CHECK(numbers_through(lossy, 250) == once);
    CHECK(numbers_through({.faults = {faults::lose(0.25)}, .seed = 4}, 250) != once);
    CHECK(numbers_through({.faults = {faults::lose(0)}}, 20).size() == 20);
    CHECK(numbers_through({.faults = {faults::duplicate(1)}}, 2) == std::vector<int>{0, 0, 1, 1});
    CHECK(numbers_through({.faults = {faults::duplicate(1).on(1, 0)}}, 2) == std::vector<int>{0, 1});
}

TEST_CASE("delays put messages of different senders out of order, not those of one") {
    std::vector<int> order;
    const rill::fault_plan late{.faults = {faults::delay_up_to(milliseconds(1))}, .seed = 1};
    sim::run(9, {.latency = {}, .bandwidth = 0, .faults = late}, [&](sim::endpoint& net) {
        if (net.rank() > 0) {
            for (int i = 0; i < 4; ++i) net.post(0, on, rill::buffer(1, static_cast<std::byte>(i)));
            return;
        }
        std::vector<rill::rank_t> all;
        for (rill::rank_t r = 1; r < 9; ++r) all.push_back(r);
        std::vector<int> next(9);
        for (int i = 0; i < 32; ++i) {
            const auto m = net.receive(all, on, deadline::never);
            CHECK(std::to_integer<int>(m->pieces()[0][0]) == next[static_cast<std::size_t>(m->source())]++);
            order.push_back(m->source());
        }
    });
    CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a killed rank ends where it is, says nothing, and gets nothing") {
    bool went_on = false, unwound = false, noticed = false;
    const sim::report all = sim::run(3, {.faults = {{faults::kill(1).at(microseconds(5))}}}, [&](sim::endpoint& net) {
        struct witness {
            bool& seen;
            ~witness() { seen = true; }
        };
        if (net.rank() == 1) {
            const witness at_end{unwound};
            try {
                net.receive(0, on, deadline::never);
            } catch (...) {
                net.abort({.context = 0, .culprit = 1, .reason = "last words"});
                net.receive(0, on, deadline::never);
            }
            went_on = true;
        } else if (net.rank() == 0) {
            net.sleep_until({6000});
            auto sent = net.post(1, on, rill::byte_view{});
            CHECK_FALSE(sent.wait(net.now() + milliseconds(1)));
            CHECK_FALSE(net.inquire(1, 0, 1, net.now() + milliseconds(1)));
            noticed = net.aborted(0).has_value();
        }
    });
    CHECK(unwound);
    CHECK_FALSE(went_on);
    CHECK_FALSE(noticed);
    CHECK(all.ranks[1].ended.ns == 5000);
    CHECK(all.links[0].lost == 1);
}

TEST_CASE("a kill after so many messages comes in place of the next one") {
    CHECK(numbers_through({{faults::kill(0).after(4)}}) == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a killed rank computes no longer and its computing activities end with it") {
    const rill::fault_plan plan{{faults::kill(0).at(microseconds(5))}};
    const sim::report all =
        sim::run(2, {.computing = rill::constant_compute{microseconds(1)}, .faults = plan}, [&](sim::endpoint& net) {
            if (net.rank() == 1) return;
            auto other = net.spawn([&] { net.receive(1, on, deadline::never); });
            net.compute(100);
        });
    CHECK(all.elapsed.ns == 5000);
}

TEST_CASE("a killed rank begins anew after its restart, and may be killed again") {
    std::vector<int> lives;
    const rill::fault_plan plan{{faults::kill(0).at(microseconds(5)), faults::restart(0).at(microseconds(10)),
                                 faults::kill(0).at(microseconds(20))}};
    int heard = 0;
    const sim::report all = sim::run(2, {.latency = {}, .faults = plan}, [&](sim::endpoint& net) {
        if (net.rank() == 0) {
            lives.push_back(net.restarts());
            net.post(1, on, rill::buffer(1));
            net.sleep_until({1'000'000});
        } else {
            while (net.receive(0, on, deadline{{50'000}})) ++heard;
        }
    });
    CHECK(lives == std::vector<int>{0, 1});
    CHECK(heard == 2);
    CHECK(all.ranks[0].lives == 2);
    CHECK(all.ranks[0].ended.ns == 20'000);
}

TEST_CASE("a slow rank computes longer from then on") {
    const rill::fault_plan plan{{faults::slow(1, 3).at(microseconds(2))}};
    const sim::report all =
        sim::run(2, {.computing = rill::constant_compute{microseconds(1)}, .faults = plan}, [](sim::endpoint& net) {
            for (int i = 0; i < 4; ++i) net.compute(1);
        });
    CHECK(all.ranks[0].computing == microseconds(4));
    CHECK(all.ranks[1].computing == microseconds(2 + 6));
}

TEST_CASE("who waits for ever for what was lost is told so") {
    const rill::fault_plan plan{{faults::cut(0, 1)}};
    CHECK_THROWS_AS(sim::run(2, {.faults = plan},
                             [](sim::endpoint& net) {
                                 if (net.rank() == 0)
                                     net.post(1, on, rill::byte_view{}).wait(deadline::never);
                                 else
                                     net.receive(0, on, deadline::never);
                             }),
                    rill::deadlock);
}

TEST_CASE("the same plan makes the same run, another seed another") {
    const auto run = [](std::uint64_t seed) {
        const rill::fault_plan plan{
            .faults = {faults::lose(0.1), faults::duplicate(0.1), faults::delay_up_to(milliseconds(1)),
                       faults::kill(2).after(3), faults::restart(2).at(milliseconds(2))},
            .seed = seed};
        return sim::run(4, {.faults = plan}, [](sim::endpoint& net) {
            std::vector<rill::rank_t> others;
            for (rill::rank_t r = 0; r < net.size(); ++r)
                if (r != net.rank()) others.push_back(r);
            for (int i = 0; i < 5; ++i)
                for (const rill::rank_t r : others) net.post(r, on, rill::buffer(10));
            while (net.receive(others, on, net.now() + milliseconds(5))) {
            }
        });
    };
    CHECK(run(1) == run(1));
    CHECK(run(1).trace_hash != run(2).trace_hash);
}
