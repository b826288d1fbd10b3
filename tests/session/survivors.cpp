#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/session/survivors.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/run_faulty.hpp>

#include "recovery.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace faults = rill::faults;
namespace sim = rill::simulated;
using ranks = std::vector<rill::rank_t>;

namespace {

/// The sum over the members of 1 from each.
template <class Members>
double count(Members& members) {
    rill::group all{members, rill::topology::ring{}, {.timeout = recovery::timeout}};
    const std::vector<double> mine(3, 1.0);
    std::vector<double> sum(3);
    rill::all_reduce(all, mine, sum);
    return sum[2];
}

/// Rank 1 has a NaN in its gradient: it gets its own error; the others repeat the step without it.
template <class Net>
void leave_with_a_nan(Net& net, std::atomic<int>& as_expected) {
    rill::survivors alive{net, recovery::timeout};
    std::vector<float> mine(10, 1.0F), sum(10);
    if (net.rank() == 1) mine[4] = std::numeric_limits<float>::quiet_NaN();
    try {
        alive.run([&](auto& members) {
            rill::group all{members, rill::topology::ring{}, {.timeout = recovery::timeout}};
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 1}}.bind(10);
            rill::all_reduce(all, mine, sum, codec);
        });
        if (net.rank() != 1 && sum[9] == 2.0F && alive.view().members == ranks{0, 2}) ++as_expected;
    } catch (const rill::invalid_value& own) {
        if (net.rank() == 1 && own.culprit() == 1) ++as_expected;
    }
}

}  // namespace

TEST_CASE("a step that all ranks complete is done once, and keeps its transport") {
    sim::run(3, {}, [](auto& net) {
        rill::survivors alive{net};
        int calls = 0;
        for (int step = 0; step < 200; ++step)
            alive.run([&](auto& members) {
                ++calls;
                CHECK(&members == &alive.net());
                if (step % 50 == 0) CHECK(count(members) == 3);
            });
        CHECK(calls == 200);
        CHECK(alive.view().epoch == 0);
        CHECK(alive.view().members == ranks{0, 1, 2});
    });
}

TEST_CASE("a rank that throws in a collective leaves; the others repeat the step without it") {
    std::atomic<int> simulated_ranks{0}, threads{0};
    sim::run(3, {}, [&](auto& net) { leave_with_a_nan(net, simulated_ranks); });
    CHECK(simulated_ranks == 3);
    rill::in_process::run(3, [&](auto& net) { leave_with_a_nan(net, threads); });
    CHECK(threads == 3);
}

TEST_CASE("a rank that throws an exception of its own after the others have completed the step leaves, too") {
    sim::run(4, {}, [](auto& net) {
        rill::survivors alive{net, recovery::timeout};
        double sum = 0;
        int calls = 0;
        const auto step = [&](auto& members) {
            ++calls;
            sum = count(members);
            if (net.rank() == 3) throw std::runtime_error("no more images");
        };
        if (net.rank() == 3) {
            CHECK_THROWS_WITH_AS(alive.run(step), "no more images", std::runtime_error);
            return;
        }
        alive.run(step);
        CHECK(sum == 3);
        CHECK(calls == 2);
        CHECK(alive.view().epoch == 1);
        CHECK(alive.view().members == ranks{0, 1, 2});
    });
}

TEST_CASE("a rank whose body returns between two steps leaves") {
    sim::run(4, {}, [](auto& net) {
        rill::survivors alive{net, recovery::timeout};
        double sum = 0;
        const auto step = [&](auto& members) { sum = count(members); };
        alive.run(step);
        CHECK(sum == 4);
        if (net.rank() == 2) return;
        alive.run(step);
        CHECK(sum == 3);
        CHECK(alive.view().members == ranks{0, 1, 3});
    });
}

TEST_CASE("a rank that throws between two steps ends alone") {
    const auto two_steps = [](auto& net, std::atomic<int>& as_expected) {
        rill::survivors alive{net, recovery::timeout};
        for (const int living : {3, 2}) {
            double sum = 0;
            alive.run([&](auto& members) { sum = count(members); });
            as_expected += sum == living ? 1 : 0;
            if (net.rank() == 1) throw std::runtime_error("the disk is full");
        }
    };
    std::atomic<int> simulated_ranks{0}, threads{0};
    CHECK_THROWS_WITH_AS(sim::run(3, {}, [&](auto& net) { two_steps(net, simulated_ranks); }), "the disk is full",
                         std::runtime_error);
    CHECK(simulated_ranks == 5);
    CHECK_THROWS_WITH_AS(rill::in_process::run(3, [&](auto& net) { two_steps(net, threads); }), "the disk is full",
                         std::runtime_error);
    CHECK(threads == 5);
}

TEST_CASE("a rank that completes a step and ends at once does not leave the others behind") {
    // On a tree some ranks have completed the step when others find that rank 2 has died.
    for (std::uint64_t after = 1; after < 12; ++after) {
        int completed = 0;
        sim::run(5, {.faults = {{faults::kill(2).after(after)}}}, [&](auto& net) {
            rill::survivors alive{net, recovery::timeout};
            alive.run([](auto& members) { count(members); });
            if (net.rank() != 2) ++completed;
        });
        CHECK(completed == 4);
    }
}

TEST_CASE("a rank that is later than two timeouts is excluded and learns it") {
    sim::run(3, {}, [](auto& net) {
        rill::survivors alive{net, recovery::timeout};
        double sum = 0;
        const auto step = [&](auto& members) {
            if (net.rank() == 0 && alive.view().epoch == 0) net.sleep_until(net.now() + rill::seconds(60));
            sum = count(members);
        };
        if (net.rank() == 0) {
            CHECK_THROWS_WITH_AS(alive.run(step),
                                 "rill: survivors: the others have gone on without rank 0, which did not take "
                                 "part in agreement 1 within 10.000000 s",
                                 rill::timeout);
            return;
        }
        alive.run(step);
        CHECK(sum == 2);
        CHECK(alive.view().members == ranks{1, 2});
    });
}

TEST_CASE("a step that the same members repeat without success ends on all of them") {
    sim::run(3, {}, [](auto& net) {
        rill::survivors alive{net, recovery::timeout, 2};
        int calls = 0;
        const auto step = [&](auto&) {
            ++calls;
            if (net.rank() == 1) throw rill::protocol_error("noise");
        };
        if (net.rank() == 1)
            CHECK_THROWS_WITH_AS(alive.run(step), "rill: noise", rill::protocol_error);
        else
            CHECK_THROWS_WITH_AS(alive.run(step),
                                 doctest::Contains("in which other ranks failed, also when it was repeated 2 times"),
                                 rill::peer_failure);
        CHECK(calls == 3);
        double sum = 0;
        alive.run([&](auto& members) { sum = count(members); });
        CHECK(sum == 3);
    });
}

TEST_CASE("threads survive the death of one that a fault plan kills") {
    rill::fault_scene scene(3, {{faults::kill(0).after(9)}});
    std::vector<recovery::witness> seen(3);
    rill::in_process::run(3, [&](auto& inner) {
        rill::run_faulty(inner, scene, [&](auto& net) {
            rill::survivors alive{net, rill::seconds(2)};
            for (int step = 0; step < 3; ++step) {
                double sum = 0;
                alive.run([&](auto& members) { sum = count(members); });
                seen[static_cast<std::size_t>(net.rank())].results.push_back(sum);
            }
        });
    });
    CHECK(seen[1].results.size() == 3);
    CHECK(seen[1].results == seen[2].results);
    CHECK(seen[1].results.back() == 2);
}
