#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "../support/scratch.hpp"

#include <algorithm>
#include <cmath>
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

/// Rank 0 sends the numbers 0 ... count - 1 to rank 1, one per microsecond. Returns those that arrive.
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

TEST_CASE("a cut link loses every message until it is healed, by time or by number") {
    sim::report seen;
    CHECK(numbers_through({{faults::cut(0, 1).at(microseconds(3)), faults::heal(0, 1).at(microseconds(6))}}, 10,
                          &seen) == std::vector<int>{0, 1, 2, 6, 7, 8, 9});
    CHECK(seen.links[0].messages == 10);
    CHECK(seen.links[0].lost == 3);
    CHECK(numbers_through({{faults::cut(0, 1).after(8)}}) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(numbers_through({{faults::cut(1, 0)}}).size() == 10);
}

TEST_CASE("a link is cut and healed in both directions at once, or in one") {
    const auto heard = [](const rill::fault_plan& plan) {
        std::vector<int> by_rank(3);
        const sim::report all = sim::run(3, {.latency = {}, .bandwidth = 0, .faults = plan}, [&](sim::endpoint& net) {
            std::vector<rill::rank_t> others;
            for (rill::rank_t r = 0; r < 3; ++r)
                if (r != net.rank()) others.push_back(r);
            for (int i = 0; i < 4; ++i) {
                for (const rill::rank_t r : others) net.post(r, on, rill::buffer(1));
                net.sleep_until({(i + 1) * 1000});
            }
            while (net.receive(others, on, deadline::immediate)) ++by_rank[static_cast<std::size_t>(net.rank())];
        });
        std::uint64_t lost = 0;
        for (const sim::link_report& link : all.links) lost += link.lost;
        by_rank.push_back(static_cast<int>(lost));
        return by_rank;
    };
    CHECK(heard({{faults::cut_between(0, 1)}}) == std::vector<int>{4, 4, 8, 8});
    CHECK(heard({{faults::cut(0, 1)}}) == std::vector<int>{8, 4, 8, 4});
    CHECK(heard({{faults::cut_between(0, 1), faults::heal(1, 0).at(microseconds(2))}}) == std::vector<int>{6, 4, 8, 6});
    CHECK(heard({{faults::cut_between(2, 1).after(1), faults::heal_between(1, 2).after(3)}}) ==
          std::vector<int>{8, 6, 6, 4});
    CHECK(heard({{faults::cut_between(rill::any_rank, 2)}}) == std::vector<int>{4, 4, 0, 16});
}

TEST_CASE("loss and duplication have their given probability, the same in each run") {
    const rill::fault_plan lossy{.faults = {faults::lose(0.25)}, .seed = 3};
    const auto once = numbers_through(lossy, 250);
    CHECK(once.size() == doctest::Approx(187).epsilon(0.1));
    CHECK(numbers_through(lossy, 250) == once);
    CHECK(numbers_through({.faults = {faults::lose(0.25)}, .seed = 4}, 250) != once);
    CHECK(numbers_through({.faults = {faults::lose(0)}}, 20).size() == 20);
    CHECK(numbers_through({.faults = {faults::duplicate(1)}}, 2) == std::vector<int>{0, 0, 1, 1});
    CHECK(numbers_through({.faults = {faults::duplicate(1).on(1, 0)}}, 2) == std::vector<int>{0, 1});
    sim::report seen;
    CHECK(numbers_through({{faults::duplicate(1).after(1), faults::lose(1).at(microseconds(3))}}, 5, &seen) ==
          std::vector<int>{0, 1, 1, 2, 2});
    CHECK(seen.links == std::vector<sim::link_report>{
                            {.source = 0, .receiver = 1, .messages = 5, .bytes = 5, .lost = 2, .duplicated = 2}});
}

TEST_CASE("a duplicate queues at the receiver's card after earlier messages") {
    const sim::network net{.latency = {},
                           .bandwidth = 0,
                           .cards = [](rill::rank_t) { return rill::network_card::single_receive(1'000'000'000); },
                           .faults = {{faults::duplicate(1)}}};
    std::vector<int> arrived;
    sim::run(2, net, [&](sim::endpoint& self) {
        for (int i = 0; i < 3; ++i)
            if (self.rank() == 0) self.post(1, on, rill::buffer(100, static_cast<std::byte>(i)));
        while (self.rank() == 1 && arrived.size() < 6)
            arrived.push_back(std::to_integer<int>(self.receive(0, on, deadline::never)->pieces()[0][0]));
        if (self.rank() == 1) CHECK(self.now().ns == 600);
    });
    CHECK(arrived == std::vector<int>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("delays reorder messages of different senders, not those of one sender") {
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

TEST_CASE("a held-back message is overtaken by the next of another sender; later ones on its link keep their order") {
    const auto order_of = [](const rill::fault_plan& plan, sim::report* seen = nullptr) {
        std::vector<int> order;  // tens: the sender, ones: the number
        const sim::report all = sim::run(4, {.latency = {}, .bandwidth = 0, .faults = plan}, [&](sim::endpoint& net) {
            constexpr rill::rank_t senders[] = {1, 2, 3};
            for (int i = 0; i < 2 && net.rank() > 0; ++i) {
                net.sleep_until({1000 * (2 * net.rank() + i)});
                net.post(0, on, rill::buffer(1, static_cast<std::byte>(10 * net.rank() + i)));
            }
            while (net.rank() == 0) {
                const auto m = net.receive(senders, on, deadline{{2'000'000}});
                if (!m) break;
                order.push_back(std::to_integer<int>(m->pieces()[0][0]));
            }
        });
        if (seen != nullptr) *seen = all;
        return order;
    };
    CHECK(order_of({}) == std::vector<int>{10, 11, 20, 21, 30, 31});
    const auto hold = faults::reorder(1, milliseconds(1));
    sim::report seen;
    CHECK(order_of({{hold.on(1, 0)}}, &seen) == std::vector<int>{20, 10, 11, 21, 30, 31});
    CHECK(seen.links[0].held == 2);
    CHECK(order_of({{hold.on(1, 0).after(1)}}) == std::vector<int>{10, 20, 11, 21, 30, 31});
    CHECK(order_of({{hold.at(microseconds(5))}}) == std::vector<int>{10, 11, 20, 30, 21, 31});
    CHECK(order_of({{hold}}) == std::vector<int>{20, 10, 11, 30, 21, 31});
    CHECK(order_of({{faults::reorder(1, microseconds(1)).on(1, 0)}}) == std::vector<int>{10, 11, 20, 21, 30, 31});
    // no message overtakes: all arrive in time
    CHECK(order_of({{hold.on(3, 0)}}) == std::vector<int>{10, 11, 20, 21, 30, 31});
    int followed = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const rill::fault_plan half{.faults = {faults::reorder(0.5, milliseconds(1)).on(1, 0)}, .seed = seed};
        CHECK(order_of(half) == order_of(half));
        const rill::detail::fault_judge judge(half, 4);
        const bool only_first = judge.of_message(1, 0, 1, {}).held.ns > 0 && judge.of_message(1, 0, 2, {}).held.ns == 0;
        if (!only_first) continue;
        ++followed;
        CHECK(order_of(half) == std::vector<int>{20, 10, 11, 21, 30, 31});
    }
    CHECK(followed > 0);
}

TEST_CASE("a held-back message is withdrawn at its sender's timeout, and later ones on its link arrive") {
    const rill::fault_plan plan{{faults::reorder(1, microseconds(20))}};
    sim::run(2, {.latency = {}, .bandwidth = 0, .faults = plan}, [&](sim::endpoint& net) {
        const rill::buffer lent(1);
        if (net.rank() == 0) {
            {
                auto given_up = net.post(1, on, rill::byte_view(lent));
                net.post(1, {.context = 0, .tag = 8}, rill::buffer(1));
                CHECK_FALSE(given_up.wait(deadline{{5'000}}));
            }
        } else {
            CHECK(net.receive(0, {.context = 0, .tag = 8}, deadline::never));
            CHECK(net.now().ns == 20'000);
            CHECK_FALSE(net.receive(0, on, deadline::immediate));
        }
    });
}

TEST_CASE("a killed rank stops where it is, and sends and receives nothing") {
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

TEST_CASE("a kill after n messages happens instead of the next one") {
    CHECK(numbers_through({{faults::kill(0).after(4)}}) == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("messages on their way to a rank when it is killed are lost, and counted as lost") {
    const rill::fault_plan plan{{faults::kill(1).at(microseconds(5))}};
    const sim::report all = sim::run(2, {.latency = microseconds(4), .bandwidth = 0, .faults = plan}, [](auto& net) {
        for (int i = 0; i < 8 && net.rank() == 0; ++i) {
            net.post(1, on, rill::buffer(1));
            net.sleep_until({(i + 1) * 1000});
        }
        if (net.rank() == 1) net.receive(1, on, deadline::never);
    });
    CHECK(all.links[0].messages == 8);
    CHECK(all.links[0].lost == 7);  // one message had arrived
}

TEST_CASE("a rank whose body has returned is neither killed nor restarted") {
    int begun = 0;
    const rill::fault_plan plan{{faults::kill(1).at(microseconds(5)), faults::restart(1)}};
    const sim::report all = sim::run(2, {.faults = plan}, [&](sim::endpoint& net) {
        if (net.rank() == 1) ++begun;
        net.sleep_until({net.rank() == 0 ? 10'000 : 3'000});
    });
    CHECK(begun == 1);
    CHECK(all.ranks[1] == sim::rank_report{.ended = microseconds(3)});
}

TEST_CASE("a run goes on until the last restarted rank has ended") {
    const rill::fault_plan plan{{faults::kill(0).at(microseconds(5)), faults::restart(0).at(microseconds(10))}};
    const sim::report all =
        sim::run(1, {.faults = plan}, [](sim::endpoint& net) { net.sleep_until(net.now() + microseconds(7)); });
    CHECK(all.ranks[0].lives == 2);
    CHECK(all.elapsed.ns == 22'000);
}

TEST_CASE("a killed rank stops computing, and its computing activities end with it") {
    const rill::fault_plan plan{{faults::kill(0).at(microseconds(5))}};
    const sim::report all =
        sim::run(2, {.computing = rill::constant_compute{microseconds(1)}, .faults = plan}, [&](sim::endpoint& net) {
            if (net.rank() == 1) return;
            auto other = net.spawn([&] { net.receive(1, on, deadline::never); });
            net.compute(100);
        });
    CHECK(all.elapsed.ns == 5000);
}

TEST_CASE("a killed rank is restarted at its restart time, and may be killed again") {
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

TEST_CASE("a rank becomes slow at its n-th message") {
    const rill::fault_plan plan{{faults::slow(1, 3).after(2), faults::slow(rill::any_rank, 2).after(4)}};
    const sim::report all =
        sim::run(2, {.computing = rill::constant_compute{microseconds(1)}, .faults = plan}, [](sim::endpoint& net) {
            for (int i = 0; i < 5; ++i) {
                net.compute(1);
                net.post(net.rank(), on, rill::buffer(1));
            }
        });
    CHECK(all.ranks[0].computing == microseconds(4 + 2));
    CHECK(all.ranks[1].computing == microseconds(2 + 6 + 2));
}

TEST_CASE("an invalid plan is refused") {
    const auto refusal = [](const rill::fault& f) {
        return message_of<rill::contract_violation>([&] { sim::run(2, {.faults = {{f}}}, [](auto&) {}); });
    };
    CHECK(has(refusal(faults::cut(0, 2)), "a fault names a rank that does not exist"));
    CHECK(has(refusal(faults::kill(rill::any_rank)), "a rank's end or beginning names the rank"));
    CHECK(has(refusal(faults::restart(1).after(3)), "a rank begins after a time, not after messages"));
    CHECK(has(refusal(faults::lose(1.5)), "a probability is between 0 and 1"));
    CHECK(has(refusal(faults::reorder(-0.5, microseconds(1))), "a probability is between 0 and 1"));
    CHECK(has(refusal(faults::slow(1, std::nan(""))), "a factor is finite, and not below 0"));
    CHECK(has(refusal(faults::heal(0, 1).at(microseconds(-1))), "a time below 0"));
}

TEST_CASE("a rank that waits for ever for a lost message gets that reason") {
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

TEST_CASE("the same plan gives the same run, another seed another run") {
    const auto run = [](std::uint64_t seed) {
        const rill::fault_plan plan{
            .faults = {faults::lose(0.1), faults::duplicate(0.1), faults::delay_up_to(milliseconds(1)),
                       faults::reorder(0.2, milliseconds(1)), faults::kill(2).after(3),
                       faults::restart(2).at(milliseconds(2))},
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

TEST_CASE("each fault changes the trace, the same way in each run") {
    const auto trace_of = [](const char* plan) {
        const sim::network net{.computing = rill::constant_compute{microseconds(3)},
                               .faults = rill::parse_fault_plan(plan)};
        return sim::run(3, net, [](sim::endpoint& self) {
            std::vector<rill::rank_t> others;
            for (rill::rank_t r = 0; r < 3; ++r)
                if (r != self.rank()) others.push_back(r);
            for (int i = 0; i < 6; ++i) {
                self.compute(1);
                for (const rill::rank_t r : others) self.post(r, on, rill::buffer(10));
                self.receive(others, on, self.now() + microseconds(20));
            }
            while (self.receive(others, on, self.now() + milliseconds(5))) {
            }
        });
    };
    const sim::report sound = trace_of("");
    for (const char* plan : {"lose 0.5", "duplicate 0.5", "delay up to 10us", "reorder 0.5 up to 1ms", "cut on 0>1",
                             "cut on 0<>1 at 3us; heal on 0>1 after 2", "kill rank 1 at 4us",
                             "kill rank 1 after 3; restart rank 1 at 1us", "slow 2 rank 1 after 2"}) {
        INFO(plan);
        CHECK(trace_of(plan) == trace_of(plan));
        CHECK(trace_of(plan).trace_hash != sound.trace_hash);
        const std::string seeded = std::string("seed 1; ") + plan;
        const bool is_random = seeded.find("0.5") != std::string::npos || seeded.find("delay") != std::string::npos;
        CHECK((trace_of(seeded.c_str()).trace_hash != trace_of(plan).trace_hash) == is_random);
    }
}

TEST_CASE("a killed rank whose memory a peer still reads is restarted when the peer has finished") {
    rill::time_point began{};
    const rill::fault_plan plan{{faults::kill(0).at(milliseconds(1)), faults::restart(0).at(milliseconds(1))}};
    const sim::report seen = sim::run(2, {.faults = plan}, [&](sim::endpoint& net) {
        if (net.restarts() > 0) {
            began = net.now();
        } else if (net.rank() == 0) {
            const rill::buffer lent(10);
            auto sent = net.post(1, on, rill::byte_view(lent));
            net.sleep_until({500'000});
            sent.settle();
        } else {
            const auto held = net.receive(0, on, deadline::never);
            net.sleep_until({5'000'000'000});
        }
    });
    CHECK(seen.ranks[0].lives == 2);
    CHECK(began.ns == 5'000'000'000);
    CHECK(seen.events < 20);
}

TEST_CASE("a run that exceeds its bound ends, and names who waits") {
    const auto forever = [](sim::endpoint& net) {
        while (!net.receive(1 - net.rank(), on, net.now() + milliseconds(10))) continue;
    };
    try {
        sim::run(2, {.longest = milliseconds(35)}, forever);
        FAIL("it has ended");
    } catch (const rill::deadlock& e) {
        CHECK(std::string(e.what()).find("no end after 35000000 ns: rank 0 waits for a message from rank 1") !=
              std::string::npos);
    }
    CHECK(sim::run(2, {.longest = milliseconds(35)}, [](sim::endpoint& net) {
              net.sleep_until({35'000'000});
          }).elapsed == milliseconds(35));
}
