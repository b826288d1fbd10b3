#include <rill/transport/faulty.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/run_faulty.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>
#include "../support/scratch.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace faults = rill::faults;
using rill::deadline;
using rill::fault_plan;
using rill::milliseconds;
using rill::rank_t;
using rill::seconds;

namespace {

constexpr rill::channel on{.context = 3, .tag = 1};
constexpr rill::channel farewell{.context = 3, .tag = 2};
constexpr std::size_t mailbox_bytes = 4096;

/// Plans that strike no message: with the second one, control travels.
void check_laws(auto&& run_inner, const char* plan) {
    int laws = 0;
    const bool travels = *plan != '\0';
    rill::testing::for_each_law(
        [&](int ranks, auto&& body) {
            rill::fault_scene scene(ranks, rill::parse_fault_plan(plan));
            CHECK(scene.control_travels() == travels);
            run_inner(ranks, [&](auto& inner) { rill::run_faulty(inner, scene, body); });
        },
        {.mailbox_bytes = mailbox_bytes,
         .same_first_notice = !travels,
         .large_bytes = 100'000,
         .largest_bytes = 1'000'000,
         .most_ranks = 16},
        [&](const char* name, const rill::testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
    CHECK(laws > 40);
}

/// Runs `body(net)` on threads with the faults of `plan`.
void run(int ranks, const char* plan, auto&& body) {
    rill::fault_scene scene(ranks, rill::parse_fault_plan(plan));
    rill::in_process::run(ranks, [&](auto& inner) { rill::run_faulty(inner, scene, body); });
}

/// A deadline later than any test should take, which ends a test that hangs.
deadline soon(const auto& net) { return net.now() + seconds(60); }

rill::buffer one_byte(int value) { return rill::buffer(1, static_cast<std::byte>(value)); }
int value_of(const auto& message) { return std::to_integer<int>(message.pieces()[0][0]); }

/// Rank 0 sends the numbers 0 ... count - 1 to rank 1, lent or handed over. Returns those that arrive.
std::vector<int> numbers_through(const char* plan, int count, bool lent = false) {
    std::vector<int> arrived;
    run(2, plan, [&](auto& net) {
        if (net.rank() == 0) {
            std::vector<rill::buffer> bytes;
            for (int i = 0; i < count; ++i) bytes.push_back(one_byte(i));
            std::vector<typename std::remove_reference_t<decltype(net)>::sending> sends;
            for (rill::buffer& each : bytes)
                if (lent)
                    sends.push_back(net.post(1, on, rill::byte_view(each)));
                else
                    net.post(1, on, std::move(each));
            net.inner().post(1, farewell, one_byte(0));
            net.inner().receive(1, farewell, soon(net));
        } else {
            net.inner().receive(0, farewell, soon(net));  // by now all have arrived
            while (const auto m = net.receive(0, on, deadline::immediate)) arrived.push_back(value_of(*m));
            net.inner().post(0, farewell, one_byte(0));
        }
    });
    return arrived;
}

}  // namespace

static_assert(rill::ConcurrentTransport<rill::faulty<rill::in_process::endpoint>>);
static_assert(rill::MonitoredTransport<rill::faulty<rill::in_process::endpoint>>);
static_assert(!rill::SharedMemoryTransport<rill::faulty<rill::in_process::endpoint>>);
static_assert(rill::ConcurrentTransport<rill::traced<rill::faulty<rill::simulated::endpoint>>>);
static_assert(rill::ConcurrentTransport<rill::subgroup<rill::faulty<rill::in_process::endpoint>>>);

TEST_CASE("a faulty transport without faults keeps the laws of a transport") {
    const char* plan = "";
    SUBCASE("ideal control") {}
    SUBCASE("control that travels") { plan = "lose 1 at 1000000s"; }
    CAPTURE(plan);
    check_laws(
        [](int ranks, auto&& body) {
            rill::simulated::run(ranks, {.control = rill::control_plane::ideal, .mailbox_bytes = mailbox_bytes}, body);
        },
        plan);
    check_laws([](int ranks, auto&& body) { rill::in_process::run(ranks, body, {.mailbox_bytes = mailbox_bytes}); },
               plan);
}

TEST_CASE("messages among threads are lost and doubled as planned, the same in each run") {
    for (const bool lent : {false, true}) {
        CHECK(numbers_through("cut on 0>1 after 2; heal on 0>1 after 5", 8, lent) == std::vector<int>{0, 1, 5, 6, 7});
        CHECK(numbers_through("cut on 1>0", 3, lent) == std::vector<int>{0, 1, 2});
        CHECK(numbers_through("cut on 1<>0", 3, lent).empty());
        CHECK(numbers_through("duplicate 1 after 1", 3, lent) == std::vector<int>{0, 1, 1, 2, 2});
        CHECK(numbers_through("delay up to 1us", 3, lent) == std::vector<int>{0, 1, 2});
    }
    const auto lossy = numbers_through("seed 3; lose 0.25", 200);
    CHECK(lossy.size() == doctest::Approx(150).epsilon(0.1));
    CHECK(numbers_through("seed 3; lose 0.25", 200) == lossy);
    CHECK(numbers_through("seed 4; lose 0.25", 200) != lossy);
}

TEST_CASE("a reordered message arrives after one of another sender") {
    const auto order_of = [](const char* plan) {
        std::vector<int> order;
        run(3, plan, [&](auto& net) {
            constexpr rank_t senders[] = {1, 2};
            if (net.rank() != 0) {
                if (net.rank() == 2) net.inner().receive(1, farewell, soon(net));
                net.post(0, on, one_byte(10 * net.rank()));
                net.post(0, on, one_byte(10 * net.rank() + 1));
                if (net.rank() == 1) net.inner().post(2, farewell, one_byte(0));
            } else {
                for (int i = 0; i < 4; ++i) order.push_back(value_of(*net.receive(senders, on, soon(net))));
            }
        });
        return order;
    };
    CHECK(order_of("") == std::vector<int>{10, 11, 20, 21});
    CHECK(order_of("reorder 1 up to 5s on 1>0 after 1") == std::vector<int>{10, 20, 21, 11});
    CHECK(order_of("reorder 1 up to 1ms on 2>0").size() == 4);
}

TEST_CASE("a rank is killed instead of sending a message, during a wait, or at a time") {
    std::atomic<int> came{0}, went_on{0};
    SUBCASE("instead of sending a message") {
        run(2, "kill rank 0 after 2", [&](auto& net) {
            if (net.rank() == 0) {
                for (int i = 0; i < 4; ++i) net.post(1, on, one_byte(i));
                ++went_on;
            } else {
                while (came < 2 && net.receive(0, on, soon(net))) ++came;
            }
        });
        CHECK(came == 2);
    }
    SUBCASE("by another activity, while it waits") {
        run(2, "kill rank 1 after 1", [&](auto& net) {
            using network = std::remove_reference_t<decltype(net)>;
            if (net.rank() == 0) return;
            typename network::event never(net);
            auto other = net.spawn([&] {
                net.post(0, on, one_byte(1));
                net.post(0, on, one_byte(2));
                ++went_on;
            });
            never.wait(soon(net));
            ++went_on;
        });
    }
    SUBCASE("by the clock, while it waits") {
        run(2, "kill rank 1 at 5ms", [&](auto& net) {
            if (net.rank() == 0) return;
            net.receive(0, on, soon(net));
            ++went_on;
        });
    }
    SUBCASE("by the clock, in simulated time") {
        rill::fault_scene scene(1, rill::parse_fault_plan("kill rank 0 at 5ms"));
        const auto done = rill::simulated::run(1, {}, [&](auto& inner) {
            rill::run_faulty(inner, scene, [&](auto& net) {
                net.sleep_until({1'000'000'000});
                ++went_on;
            });
        });
        CHECK(done.elapsed == milliseconds(5));
    }
    CHECK(went_on == 0);
}

TEST_CASE("a killed rank sends and receives nothing, and may be restarted") {
    std::vector<int> lives;
    int heard = 0;
    std::uint64_t lost = 0;
    rill::fault_scene scene(2, rill::parse_fault_plan("kill rank 0 after 2; restart rank 0; kill rank 0 after 1"));
    rill::in_process::run(2, [&](auto& inner) {
        rill::run_faulty(inner, scene, [&](auto& net) {
            if (net.rank() == 0) {
                lives.push_back(net.restarts());
                if (net.restarts() == 0) net.announce(on.context, {.number = 1});
                try {
                    for (int i = 0; i < 9; ++i) net.post(1, on, one_byte(10 * net.restarts() + i));
                } catch (const rill::rank_killed&) {
                    net.abort({.context = on.context, .culprit = 0, .reason = "last words"});
                    if (net.restarts() == 1) net.inner().post(1, farewell, one_byte(0));
                    throw;
                }
            } else {
                net.inner().receive(0, farewell, soon(net));
                while (net.receive(0, on, deadline::immediate)) ++heard;
                CHECK_FALSE(net.aborted(on.context));
                CHECK(net.inner().inquire(0, on.context, 1, deadline::immediate));
                CHECK_FALSE(net.inquire(0, on.context, 1, deadline::immediate));
                net.post(0, on, one_byte(1));
                lost = scene.lost(1, 0);
            }
        });
    });
    CHECK(lives == std::vector<int>{0, 1});
    CHECK(heard == 3);
    CHECK(lost == 1);
    CHECK_FALSE(scene.is_alive(0));
}

TEST_CASE("a collective over a cut link, or with a killed rank, fails on all ranks by its name") {
    using notices = std::vector<std::optional<rill::abort_notice>>;
    auto control = rill::control_plane::travelling;
    SUBCASE("control that travels") {}
    SUBCASE("ideal control") { control = rill::control_plane::ideal; }
    const auto errors_of = [&](int ranks, const char* plan, rill::duration timeout) {
        notices errors(static_cast<std::size_t>(ranks));
        const auto body = [&](auto& net) {
            rill::group workers{net, rill::topology::ring{}, {.timeout = timeout}};
            std::vector<float> data(30, 1.0F), sum(30);
            for (int i = 0; i < 6; ++i) try {
                    rill::all_reduce(workers, data, sum);
                } catch (const rill::error& failed) {
                    errors[static_cast<std::size_t>(net.rank())] = failed.notice();
                    return;
                }
        };
        rill::fault_scene scene(ranks, rill::parse_fault_plan(plan), control);
        rill::in_process::run(ranks, [&](auto& inner) { rill::run_faulty(inner, scene, body); });
        return errors;
    };
    /// The ends of a link, lower rank first.
    const auto ends_of = [](const auto& notice) { return std::minmax({notice->culprit, notice->other}); };
    CHECK(errors_of(2, "", seconds(60)) == notices(2));
    const auto cut = errors_of(2, "cut on 0>1 after 6", seconds(1));
    REQUIRE(cut[0]);
    INFO(cut[0]->reason);
    for (const auto& each : cut) CHECK(ends_of(each) == std::pair<rank_t, rank_t>(0, 1));
    if (control == rill::control_plane::ideal) CHECK(cut[0] == cut[1]);
    const auto killed = errors_of(2, "kill rank 1 after 6", seconds(1));
    CHECK(killed[0]->culprit == 1);
    CHECK_FALSE(killed[1]);
    const auto many = errors_of(3, "cut on 1>2 after 6", seconds(1));
    REQUIRE(many[0]);
    INFO(many[0]->reason);
    for (const auto& each : many) CHECK(ends_of(each) == std::pair<rank_t, rank_t>(1, 2));
    if (control == rill::control_plane::ideal) CHECK((many[0] == many[1] && many[1] == many[2]));
}

TEST_CASE("a notice travels: a cut holds it back, loss delays it, and the first that arrives stays") {
    constexpr rill::abort_notice (*of)(rank_t) = [](rank_t culprit) {
        return rill::abort_notice{.context = on.context, .culprit = culprit, .reason = "enough"};
    };
    constexpr rill::channel gate{.context = on.context + 1, .tag = 0};
    const auto heard = [&](const char* plan, rill::control_plane control) {
        std::optional<rank_t> culprit;
        rill::fault_scene scene(2, rill::parse_fault_plan(plan), control);
        rill::in_process::run(2, [&](auto& inner) {
            rill::run_faulty(inner, scene, [&](auto& net) {
                if (net.rank() == 0) {
                    CHECK(net.abort(of(0)) == of(0));
                    CHECK(net.abort(of(5)) == of(0));
                    CHECK_THROWS_AS(net.receive(1, on, deadline::never), rill::peer_failure);
                    net.inner().post(1, gate, one_byte(0));
                    return;
                }
                net.inner().receive(0, gate, soon(net));
                try {
                    net.receive(0, on, net.now() + milliseconds(300));
                } catch (const rill::peer_failure& thrown) {
                    culprit = thrown.culprit();
                    CHECK(net.abort(of(1)) == of(0));
                }
            });
        });
        return culprit;
    };
    const auto travelling = rill::control_plane::travelling, ideal = rill::control_plane::ideal;
    CHECK_FALSE(heard("cut on 0>1", travelling));
    CHECK(heard("cut on 0>1", ideal) == 0);
    CHECK(heard("cut on 1>0", travelling) == 0);
    CHECK(heard("seed 2; lose 0.8", travelling) == 0);
    CHECK(heard("delay up to 5ms", travelling) == 0);
    CHECK(heard("cut on 0>1; heal on 0>1 at 20ms", travelling) == 0);
}

TEST_CASE("an inquiry gets no answer over a cut link, in either direction") {
    for (const char* plan : {"cut on 0>1", "cut on 1>0", "delay up to 1ms", "seed 1; lose 0.5"}) {
        CAPTURE(plan);
        bool is_answered = false;
        run(2, plan, [&](auto& net) {
            if (net.rank() == 0) {
                net.announce(on.context, {.number = 1, .kind = rill::operation::barrier});
                net.inner().receive(1, farewell, soon(net));
                return;
            }
            const bool is_cut = *plan == 'c';
            const auto said =
                net.inquire(0, on.context, 1, is_cut ? deadline(net.now() + milliseconds(20)) : soon(net));
            is_answered = said && said->kind == rill::operation::barrier;
            CHECK(net.inquire(1, on.context, 1, deadline::immediate) == std::nullopt);
            net.inner().post(0, farewell, one_byte(0));
        });
        CHECK(is_answered == (*plan != 'c'));
    }
}

TEST_CASE("who is asked tells the notice that it knows, also where the one who sent it is cut off") {
    std::atomic<int> told{0};
    run(3, "cut on 0>2", [&](auto& net) {
        const rill::abort_notice notice{.context = on.context, .culprit = 0, .reason = "enough"};
        if (net.rank() == 0) net.abort(notice);
        if (net.rank() == 1) CHECK_THROWS_AS(net.receive(0, on, soon(net)), rill::peer_failure);
        if (net.rank() == 2) {
            CHECK_FALSE(net.receive(0, on, net.now() + milliseconds(20)));
            CHECK_THROWS_AS(net.inquire(1, on.context, 1, soon(net)), rill::peer_failure);
            ++told;
        }
        const rank_t next = (net.rank() + 1) % 3, previous = (net.rank() + 2) % 3;
        for (int i = 0; i < 2; ++i) {  // none ends before all are here
            net.inner().post(next, farewell, one_byte(0));
            net.inner().receive(previous, farewell, soon(net));
        }
    });
    CHECK(told == 1);
}

namespace {

constexpr rill::channel events{.context = 9, .tag = 0};

/// What rank 0 is told of rank 1, each with the incarnation; `most` in number, or until it has waited for 300 ms.
std::vector<rill::peer_event> told_of(const char* plan, std::size_t most, auto&& body) {
    std::vector<rill::peer_event> all;
    run(2, plan, [&](auto& net) {
        if (net.rank() == 1) {
            net.inner().receive(0, farewell, soon(net));
            return body(net);
        }
        net.monitor(events);
        const std::uint64_t first = net.incarnation(1);
        for (int life = 0; life < 3; ++life) net.inner().post(1, farewell, one_byte(0));
        while (all.size() < most)
            if (const auto told = net.receive(1, events, net.now() + milliseconds(300)))
                all.push_back(rill::read_peer_event(*told));
            else
                break;
        if (!all.empty()) CHECK(all[0].incarnation == first);
        if (!all.empty()) CHECK(net.incarnation(1) == all.back().incarnation);
    });
    return all;
}

}  // namespace

TEST_CASE("who monitors is told of ranks that the plan kills and restarts") {
    using rill::peer_change;
    const auto post_two = [](auto& net) {
        for (int i = 0; i < 2; ++i) net.post(0, on, one_byte(i));
    };
    const auto killed = told_of("kill rank 1 after 1", 9, post_two);
    REQUIRE(killed.size() == 1);
    CHECK(killed[0].kind == peer_change::ended);
    const auto restarted = told_of("kill rank 1 after 1; restart rank 1 at 5ms", 9, post_two);
    REQUIRE(restarted.size() == 3);
    CHECK(restarted[0].kind == peer_change::ended);
    CHECK(restarted[1].kind == peer_change::arrived);
    CHECK(restarted[2] == rill::peer_event{peer_change::ended, restarted[1].incarnation});
    CHECK(restarted[1].incarnation != restarted[0].incarnation);
    CHECK(told_of("cut on 1>0", 9, post_two).empty());  // also its end travels
    CHECK(told_of("cut on 0>1", 1, post_two).size() == 1);
    CHECK(told_of("seed 3; lose 0.7", 1, post_two).size() == 1);
}

TEST_CASE("a fence cuts off a life that the plan has ended, and not the next one") {
    std::vector<int> got;
    run(2, "kill rank 1 after 2; restart rank 1 at 100ms", [&](auto& net) {
        if (net.rank() == 1) {
            if (net.restarts() > 0) net.inner().receive(0, farewell, soon(net));
            for (int i = 0; i < 2 + net.restarts(); ++i) net.post(0, on, one_byte(10 * net.restarts() + i));
            if (net.restarts() == 0) net.post(0, on, one_byte(9));  // dies
            return;
        }
        net.monitor(events);
        const std::uint64_t life = net.incarnation(1);
        CHECK(rill::read_peer_event(*net.receive(1, events, soon(net))).incarnation == life);
        net.fence(1, life);
        const rill::channel beside{.context = events.context, .tag = 1};
        net.inner().post(1, farewell, one_byte(0));
        CHECK(rill::read_peer_event(*net.receive(1, events, soon(net))).kind == rill::peer_change::arrived);
        while (const auto m = net.receive(1, on, net.now() + milliseconds(100))) got.push_back(value_of(*m));
        CHECK_THROWS_AS(net.receive(1, beside, soon(net)), rill::peer_failure);
    });
    CHECK(got == std::vector<int>{10, 11, 12});
}

TEST_CASE("a slow rank computes longer where computing takes modelled time") {
    rill::fault_scene scene(2, rill::parse_fault_plan("slow 3 rank 1"));
    const auto done = rill::simulated::run(2, {.computing = rill::constant_compute{milliseconds(1)}}, [&](auto& inner) {
        rill::run_faulty(inner, scene, [](auto& net) { rill::compute(net, 2); });
    });
    CHECK(done.ranks[0].computing == milliseconds(2));
    CHECK(done.ranks[1].computing == milliseconds(6));
}

TEST_CASE("faulty: a network without ranks, or with faults of ranks that do not exist, is refused") {
    CHECK_THROWS_AS(rill::fault_scene(0, {}), rill::contract_violation);
    CHECK_THROWS_AS(rill::fault_scene(-1, {}), rill::contract_violation);
    CHECK_THROWS_AS(rill::fault_scene(2, rill::parse_fault_plan("kill rank 2 after 1")), rill::contract_violation);
}
