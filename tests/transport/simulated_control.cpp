// Control that travels: it takes the time of its links, is lost and repeated, and a cut stops it.
#include <rill/testing/transport_laws.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sim = rill::simulated;
namespace faults = rill::faults;
using rill::deadline;
using rill::microseconds;
using rill::milliseconds;

namespace {

sim::network travelling(std::vector<rill::fault> planned = {}) {
    return {.latency = microseconds(10), .faults = {std::move(planned)}};
}

/// When rank 1 hears that rank 0 has aborted context 3 at once, in µs; -1 if it never does.
double notice_heard(const sim::network& net_of_all) {
    double heard = -1;
    sim::run(2, net_of_all, [&](sim::endpoint& net) {
        if (net.rank() == 0) {
            net.abort({.context = 3, .culprit = 0, .reason = "enough"});
            return net.sleep_until({rill::seconds(200).ns});
        }
        CHECK(net.aborted(3).has_value() == (net_of_all.control == sim::control_plane::ideal));
        try {
            net.receive(0, {3, 0}, deadline{rill::time_point{rill::seconds(200).ns}});
        } catch (const rill::peer_failure&) {
            heard = static_cast<double>(net.now().ns) / 1000;
            CHECK(net.aborted(3).has_value());
        }
    });
    return heard;
}

/// When the inquiry of rank 1 comes back, in µs, and what it says. Rank 0 enters call 1 at 100 µs.
struct answer {
    double at = 0;
    bool is_known = false;
};
answer inquired(const sim::network& net_of_all) {
    answer seen;
    sim::run(2, net_of_all, [&](sim::endpoint& net) {
        if (net.rank() == 0) {
            net.sleep_until({microseconds(100).ns});
            net.announce(3, {.number = 1, .kind = rill::operation::barrier});
            return net.sleep_until({rill::seconds(200).ns});
        }
        const auto said = net.inquire(0, 3, 1, deadline{rill::time_point{rill::seconds(1).ns}});
        seen = {static_cast<double>(net.now().ns) / 1000, said.has_value()};
        if (said) CHECK(said->kind == rill::operation::barrier);
    });
    return seen;
}

}  // namespace

TEST_CASE("ideal control keeps the laws of a transport, also that racing notices are one") {
    for (const auto jitter : {rill::duration{}, milliseconds(1)}) {
        const sim::network ideal{
            .control = sim::control_plane::ideal, .jitter = jitter, .seed = 3, .mailbox_bytes = 4096};
        int laws = 0;
        rill::testing::for_each_law([&](int ranks, auto&& body) { sim::run(ranks, ideal, body); },
                                    {.mailbox_bytes = 4096, .large_bytes = 100'000, .largest_bytes = 1'000'000},
                                    [&](const char* name, const rill::testing::law_outcome& outcome) {
                                        ++laws;
                                        CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
                                    });
        CHECK(laws > 40);
    }
}

TEST_CASE("a notice takes the latency of its link, and none if control is ideal") {
    sim::network ideal = travelling();
    ideal.control = sim::control_plane::ideal;
    CHECK(notice_heard(ideal) == 0);
    CHECK(notice_heard(travelling()) == 10);
    CHECK(notice_heard(travelling({faults::delay_up_to(milliseconds(5))})) > 10);
}

TEST_CASE("a lost notice is repeated; a cut stops it until it heals") {
    CHECK(notice_heard(travelling({faults::cut(0, 1), faults::heal(0, 1).at(microseconds(500))})) == 1010);
    CHECK(notice_heard(travelling({faults::cut(0, 1), faults::heal(0, 1).at(microseconds(1500))})) == 3010);
    CHECK(notice_heard(travelling({faults::cut(0, 1)})) == -1);
    CHECK(notice_heard(travelling({faults::cut(1, 0)})) == 10);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        sim::network lossy = travelling({faults::lose(0.7)});
        lossy.faults.seed = seed;
        CHECK(notice_heard(lossy) >= 10);
        CHECK(notice_heard(lossy) == notice_heard(lossy));
    }
}

TEST_CASE("an inquiry goes to the peer, whose answer comes back when it has entered the call") {
    sim::network ideal = travelling();
    ideal.control = sim::control_plane::ideal;
    CHECK(inquired(ideal).at == 100);
    CHECK(inquired(travelling()).at == 110);
    for (const auto& broken : {faults::cut(0, 1), faults::cut(1, 0)}) {
        const answer none = inquired(travelling({broken}));
        CHECK_FALSE(none.is_known);
        CHECK(none.at == 1'000'000);
    }
    const answer late = inquired(travelling({faults::cut(1, 0), faults::heal(1, 0).at(microseconds(2000))}));
    CHECK(late.is_known);
    CHECK(late.at == 3020);
}

TEST_CASE("an inquiry that does not wait asks, and a later one has the answer") {
    sim::run(2, travelling(), [](sim::endpoint& net) {
        if (net.rank() == 0) {
            net.announce(3, {.number = 1});
            return;  // also the departure is told only to those who ask
        }
        CHECK_FALSE(net.inquire(0, 3, 1, deadline::immediate));
        net.sleep_until({microseconds(50).ns});
        CHECK(net.inquire(0, 3, 1, deadline::immediate)->number == 1);
        CHECK_FALSE(net.inquire(0, 3, 2, deadline::immediate));
        net.sleep_until({microseconds(100).ns});
        CHECK(net.inquire(0, 3, 2, deadline::immediate)->kind == rill::operation::departure);
    });
}

TEST_CASE("notices that race may win on different ranks; each stays where it won") {
    std::vector<rill::rank_t> first(3), last(3);
    sim::run(3, travelling(), [&](sim::endpoint& net) {
        const auto self = static_cast<std::size_t>(net.rank());
        if (net.rank() < 2) net.abort({.context = 3, .culprit = net.rank(), .reason = "enough"});
        net.sleep_until({microseconds(50).ns});
        first[self] = net.aborted(3)->culprit;
        last[self] = net.abort({.context = 3, .culprit = 2, .reason = "late"}).culprit;
    });
    CHECK(first == std::vector<rill::rank_t>{0, 1, 0});
    CHECK(last == first);
}

TEST_CASE("a rank that begins anew is asked again, and told again") {
    bool told = false, answered = false;
    sim::run(2, travelling({faults::kill(1).at(microseconds(5)), faults::restart(1).at(microseconds(500))}),
             [&](sim::endpoint& net) {
                 if (net.rank() == 0) {
                     net.abort({.context = 3, .culprit = 0, .reason = "enough"});
                     answered = net.inquire(1, 4, 1, deadline{rill::time_point{rill::seconds(1).ns}}).has_value();
                     return;
                 }
                 if (net.restarts() > 0) net.announce(4, {.number = 1});
                 try {
                     net.receive(0, {3, 0}, deadline::never);
                 } catch (const rill::peer_failure&) {
                     told = net.restarts() == 1;
                 }
             });
    CHECK(told);
    CHECK(answered);
}

TEST_CASE("an exception that leaves a body travels, and who cannot hear of it stands still") {
    std::vector<std::int64_t> ended(3);
    std::string said;
    try {
        sim::run(3, travelling({faults::cut(0, 2)}), [&](sim::endpoint& net) {
            if (net.rank() == 0) throw std::out_of_range("index 7");
            try {
                net.receive(net.rank(), {3, 0}, deadline::never);
            } catch (const rill::error& heard) {
                ended[static_cast<std::size_t>(net.rank())] = net.now().ns;
                if (net.rank() == 2) said = heard.what();
                throw;
            }
        });
        FAIL("the exception is lost");
    } catch (const std::out_of_range&) {
    }
    CHECK(ended[1] == 10'000);
    CHECK(ended[2] > rill::seconds(60).ns);
    CHECK(said.find("deadlock") != std::string::npos);
}
