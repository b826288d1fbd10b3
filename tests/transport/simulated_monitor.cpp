// Seats that are taken late, ranks that die and come back, and what those who monitor are told.
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim = rill::simulated;
namespace faults = rill::faults;
using rill::deadline;
using rill::microseconds;
using rill::peer_change;
using rill::peer_event;

namespace {

constexpr rill::channel events{.context = 9, .tag = 0}, numbers{.context = 5, .tag = 1};

struct told {
    peer_event event;
    std::int64_t at;  ///< in ns
};

/// All that rank 0 is told of rank 1 until `end`; rank 1 does as `body` says.
template <class Body>
std::vector<told> told_of(const sim::network& net_of_all, rill::duration end, Body&& body, int ranks = 2) {
    std::vector<told> all;
    sim::run(ranks, net_of_all, [&](sim::endpoint& net) {
        if (net.rank() != 0) return body(net);
        net.monitor(events);
        while (net.now().ns < end.ns) try {
                if (const auto message = net.receive(1, events, rill::time_point{end.ns}))
                    all.push_back({rill::read_peer_event(*message), net.now().ns});
            } catch (const rill::peer_failure&) {
                net.sleep_until({net.now().ns + 1000});
            }
    });
    return all;
}

sim::network wire(std::vector<rill::fault> planned, sim::control_plane control = sim::control_plane::travelling) {
    return {.latency = microseconds(10), .bandwidth = 0, .faults = {std::move(planned)}, .control = control};
}

void sleep_long(sim::endpoint& net) { net.sleep_until({rill::seconds(10).ns}); }

}  // namespace

TEST_CASE("a kill is told after the latency of the link, at once where control is ideal") {
    const auto plan = [] { return std::vector{faults::kill(1).at(microseconds(50))}; };
    const auto late = told_of(wire(plan()), rill::milliseconds(1), sleep_long);
    REQUIRE(late.size() == 1);
    CHECK(late[0].event.kind == peer_change::ended);
    CHECK(late[0].at == 60'000);
    const auto ideal = told_of(wire(plan(), sim::control_plane::ideal), rill::milliseconds(1), sleep_long);
    REQUIRE(ideal.size() == 1);
    CHECK(ideal[0].event == late[0].event);
    CHECK(ideal[0].at == 50'000);
}

TEST_CASE("a killed rank that begins anew is told to have ended and arrived, in another incarnation") {
    const auto all = told_of(wire({faults::kill(1).at(microseconds(50)), faults::restart(1).at(microseconds(100))}),
                             rill::milliseconds(1), sleep_long);
    REQUIRE(all.size() == 2);
    CHECK(all[0].event.kind == peer_change::ended);
    CHECK(all[1].event.kind == peer_change::arrived);
    CHECK(all[0].event.incarnation != all[1].event.incarnation);
    CHECK(all[1].at == 160'000);
}

TEST_CASE("the first message of a life proves the end of the last one, even if its telling was lost") {
    // The end of the first life is lost, and would be repeated only at 1.05 ms.
    const auto all = told_of(wire({faults::kill(1).at(microseconds(50)), faults::restart(1).at(microseconds(300)),
                                   faults::cut(1, 0).at(microseconds(40)), faults::heal(1, 0).at(microseconds(360))}),
                             rill::milliseconds(3), [](sim::endpoint& net) {
                                 net.sleep_until({microseconds(400).ns});
                                 if (net.restarts() > 0) net.post(0, numbers, rill::buffer(1));
                                 sleep_long(net);
                             });
    REQUIRE(all.size() == 2);
    CHECK(all[0].event.kind == peer_change::ended);
    CHECK(all[1].event.kind == peer_change::arrived);
    CHECK(all[0].at == 410'000);
    CHECK(all[1].at == 410'000);
}

TEST_CASE("a cut holds the telling of an end back until it heals") {
    const std::vector plan{faults::kill(1).at(microseconds(50)), faults::cut(1, 0),
                           faults::heal(1, 0).at(rill::milliseconds(5))};
    CHECK(told_of(wire({plan[0], plan[1]}), rill::seconds(2), sleep_long).empty());
    const auto late = told_of(wire(plan), rill::seconds(5), sleep_long);
    REQUIRE(late.size() == 1);
    CHECK(late[0].at > rill::milliseconds(5).ns);
    CHECK(late[0].at < rill::milliseconds(10).ns);
}

TEST_CASE("a peer whose control is lost for long is told to be silent, and to have recovered when it is heard again") {
    const auto heals = faults::heal(1, 0).at(rill::seconds(6));
    for (const bool is_killed : {false, true}) {
        std::vector plan{faults::cut(1, 0), heals};
        if (is_killed) plan.push_back(faults::kill(1).at(microseconds(50)));
        const auto all = told_of(wire(plan), rill::seconds(9), [](sim::endpoint& net) {
            net.abort({.context = 77, .culprit = 1, .reason = "enough"});
            sleep_long(net);
        });
        REQUIRE(all.size() == (is_killed ? 3 : 2));
        CHECK(all[0].event.kind == peer_change::silent);
        CHECK(all[0].at >= rill::seconds(3).ns);
        CHECK(all[0].at < rill::seconds(5).ns);
        CHECK(all[1].event.kind == peer_change::recovered);
        CHECK(all[1].at >= rill::seconds(6).ns);
        CHECK(all[1].event.incarnation == all[0].event.incarnation);
        if (is_killed) CHECK(all[2].event.kind == peer_change::ended);
    }
}

TEST_CASE(
    "a rank that says nothing is told to be silent when its link is cut, and to have recovered when it is healed") {
    const auto all = told_of(wire({faults::cut(1, 0).at(rill::seconds(1)), faults::heal(1, 0).at(rill::seconds(6))}),
                             rill::seconds(9), sleep_long);
    REQUIRE(all.size() == 2);
    CHECK(all[0].event.kind == peer_change::silent);
    CHECK(all[0].at >= rill::seconds(4).ns);
    CHECK(all[0].at < rill::seconds(6).ns);
    CHECK(all[1].event.kind == peer_change::recovered);
    CHECK(all[1].at < rill::seconds(8).ns);
}

TEST_CASE("in a context that is monitored, a wait for a silent rank ends, and names both ends of the link") {
    const rill::byte_view one_byte = std::as_bytes(std::span("x", 1));
    const auto waits_in_vain = [](sim::endpoint& net, auto&& wait) {
        try {
            wait();
        } catch (const rill::peer_failure& thrown) {
            CHECK(thrown.culprit() == 1);
            CHECK(thrown.notice().other == 0);
            CHECK(std::string(thrown.what()).find("rank 0 waits for rank 1, and hears nothing of it") == 6);
            return net.now().ns;
        }
        return std::int64_t{0};
    };
    constexpr rill::channel beside{.context = events.context, .tag = 7};
    std::vector<std::int64_t> ended;
    sim::run(3, wire({faults::cut_between(0, 1).at(rill::seconds(1))}), [&](sim::endpoint& net) {
        if (net.rank() != 0) return sleep_long(net);
        net.monitor(events);
        net.sleep_until({rill::seconds(2).ns});
        auto sent = net.post(1, beside, rill::byte_pieces(one_byte));
        for (int again = 0; again < 2; ++again) {
            ended.push_back(waits_in_vain(net, [&] { net.receive(1, beside, deadline::never); }));
            ended.push_back(waits_in_vain(net, [&] { sent.wait(deadline::never); }));
        }
        const std::vector<rill::rank_t> both{1, 2};
        const rill::time_point later{rill::seconds(7).ns};
        CHECK(!net.receive(both, beside, later));
        CHECK(!net.receive(1, numbers, later));
        CHECK(net.receive(1, events, later).has_value());
        CHECK(!net.receive(1, events, later));
    });
    REQUIRE(ended.size() == 4);
    CHECK(ended[0] >= rill::seconds(4).ns);
    CHECK(ended[0] < rill::seconds(6).ns);
    for (const std::int64_t each : ended) CHECK(each == ended[0]);
}

TEST_CASE("an end waits for a large message that is still under way") {
    for (const auto control : {sim::control_plane::ideal, sim::control_plane::travelling}) {
        sim::network net = wire({faults::kill(1).at(microseconds(50))}, control);
        net.bandwidth = 1'000'000;  // 100,000 bytes take 100 ms
        std::vector<char> order;
        sim::run(2, net, [&](sim::endpoint& own) {
            if (own.rank() == 1) {
                own.post(0, numbers, rill::buffer(100'000));
                return sleep_long(own);
            }
            own.monitor(events);
            CHECK(own.receive(1, events, deadline::never).has_value());
            CHECK(own.now().ns >= 100'010'000);
            CHECK(own.now().ns < 300'000'000);
            CHECK(own.receive(1, numbers, deadline::immediate)->pieces().size_bytes() == 100'000);
        });
    }
}

TEST_CASE("seats are free until the plan lets a rank take them") {
    sim::network net = wire({faults::start(1).at(microseconds(70))});
    net.seats = 4;
    std::vector<int> sizes;
    std::uint64_t before = 1, after = 0;
    const sim::report all = sim::run(1, net, [&](sim::endpoint& own) {
        sizes.push_back(own.size());
        if (own.rank() == 1) return own.sleep_until({microseconds(500).ns});
        before = own.incarnation(1);
        own.monitor(events);
        own.post(1, numbers, rill::buffer(1));  // lost
        const auto message = own.receive(1, events, deadline::never);
        CHECK(own.now().ns == 80'000);
        const peer_event event = rill::read_peer_event(*message);
        CHECK(event.kind == peer_change::arrived);
        after = own.incarnation(1);
        CHECK(event.incarnation == after);
        CHECK(own.incarnation(3) == 0);
        CHECK(rill::read_peer_event(*own.receive(1, events, deadline::never)) == peer_event{peer_change::ended, after});
    });
    CHECK(sizes == std::vector<int>{4, 4});
    CHECK(before == 0);
    CHECK(after != 0);
    CHECK(all.ranks[1].lives == 1);
    CHECK(all.ranks[2].lives == 0);
    CHECK(all.ranks[3].waiting == rill::duration{});
    CHECK(all.links[0].lost == 1);
    CHECK(rill::parse_fault_plan("start rank 1 at 70us").faults == net.faults.faults);
    CHECK(to_string(net.faults).find("start rank 1 at 70us") != std::string::npos);
}

TEST_CASE("a fence holds back the old life, not the new one") {
    std::vector<std::size_t> arrived;
    sim::run(2, wire({faults::kill(1).at(microseconds(50)), faults::restart(1).at(microseconds(100))}),
             [&](sim::endpoint& net) {
                 if (net.rank() == 1) {
                     for (int i = 0; i < 3; ++i)
                         net.post(0, numbers, rill::buffer(static_cast<std::size_t>(net.restarts()) + 1));
                     if (net.restarts() == 0) sleep_long(net);
                     return;
                 }
                 net.monitor(events);
                 net.sleep_until({microseconds(5).ns});  // its messages are under way
                 net.fence(1, net.incarnation(1));
                 CHECK(rill::read_peer_event(*net.receive(1, events, deadline::never)).kind == peer_change::arrived);
                 for (int i = 0; i < 3; ++i)
                     arrived.push_back(net.receive(1, numbers, deadline::never)->pieces().size_bytes());
             });
    CHECK(arrived == std::vector<std::size_t>{2, 2, 2});
}

TEST_CASE("a run in which ranks come, go and are told of it replays bit for bit") {
    sim::network net = wire({faults::kill(2).at(microseconds(50)), faults::restart(2).at(microseconds(100)),
                             faults::start(3).at(microseconds(90)), faults::lose(0.3)});
    net.seats = 4;
    net.jitter = microseconds(30);
    const auto once = [&] {
        return sim::run(3, net, [](sim::endpoint& own) {
            own.monitor(events);
            std::vector<rill::rank_t> peers;
            for (rill::rank_t peer = 0; peer < own.size(); ++peer)
                if (peer != own.rank()) peers.push_back(peer);
            while (own.receive(peers, events, rill::time_point{rill::milliseconds(2).ns})) continue;
        });
    };
    CHECK(once() == once());
}

TEST_CASE("a rank that has heard of an exception goes on once it monitors, as does one that hears of another later") {
    for (const auto control : {sim::control_plane::travelling, sim::control_plane::ideal}) {
        CAPTURE(static_cast<int>(control));
        int gone_on = 0;
        const auto body = [&](sim::endpoint& net) {
            if (net.rank() == 1) throw std::out_of_range("rank 1");
            if (net.rank() == 3) {
                net.monitor(events);
                net.sleep_until({rill::milliseconds(1).ns});
                throw std::out_of_range("rank 3");
            }
            CHECK_THROWS_AS(net.receive(1, numbers, deadline::never), rill::peer_failure);
            CHECK(net.aborted(rill::every_context));
            net.monitor(events);
            CHECK_FALSE(net.aborted(rill::every_context));
            const rill::rank_t other = 2 - net.rank();
            CHECK(net.post(other, numbers, rill::buffer(1)));
            CHECK(net.receive(other, numbers, deadline::never));
            CHECK_FALSE(net.receive(other, numbers, rill::time_point{rill::milliseconds(2).ns}));
            CHECK_FALSE(net.aborted(rill::every_context));
            ++gone_on;
        };
        CHECK_THROWS_AS(sim::run(4, wire({}, control), body), std::out_of_range);
        CHECK(gone_on == 2);
    }
}
