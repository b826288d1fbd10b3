// What becomes of a gossip whose ranks die or restart, and what is refused before anything is sent.
#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/session/survivors.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gossip_survivors_cases {

using namespace rill;
using simulated::endpoint;
using topology::random_matching;
using topology::ring;
using topology::ring_neighbours;

TEST_CASE("gossip: survivors form a gossip of their own, and go on with their models") {
    const int ranks = 6;
    for (std::uint64_t messages = 25; messages < 45; messages += 5) {
        simulated::network network;
        network.faults.faults = {faults::kill(2).after(messages)};
        std::vector<double> models(ranks, -1);
        std::vector<int> sizes(ranks, 0);
        simulated::run(ranks, network, [&](endpoint& net) {
            survivors alive{net, seconds(5)};
            std::vector<double> model(8, net.rank());
            alive.run([&](auto& members) {
                group workers{members, ring{}, {.timeout = seconds(5)}};
                gossip replica{workers, random_matching{}};
                for (int round = 0; round < 60; ++round) replica.mix(model);
                sizes[static_cast<std::size_t>(net.rank())] = members.size();
            });
            models[static_cast<std::size_t>(net.rank())] = model[0];
        });
        CHECK(models[2] == -1);
        for (const std::size_t rank : {0U, 1U, 3U, 4U, 5U}) {
            CHECK(sizes[rank] == ranks - 1);
            CHECK(models[rank] == doctest::Approx(models[0]).epsilon(1e-3));
        }
    }
}

/// The rounds of the ranks that have not died, where rank 2 dies and comes back; and whether it was refused.
template <class Rounds>
int restarted(const simulated::network& network, Rounds rounds) {
    int refused = 0;
    simulated::run(5, network, [&](endpoint& net) {
        std::vector<double> model(8, net.rank());
        if (net.restarts() == 0) return rounds(net, model);
        try {
            rounds(net, model);
        } catch (const error&) {
            ++refused;
        }
        CHECK(model == std::vector<double>(8, 2));
    });
    return refused;
}
simulated::network restarts_rank_2() {
    simulated::network network;
    network.faults.faults = {faults::kill(2).after(40), faults::restart(2).at(milliseconds(1))};
    return network;
}

TEST_CASE("coordinated gossip: a rank that restarts is out, and disturbs nobody") {
    int ended = 0;
    const int refused = restarted(restarts_rank_2(), [&](endpoint& net, std::vector<double>& model) {
        group workers{net, ring{}, {.timeout = seconds(10)}};
        gossip saps{workers, random_matching{}, coordinated{.rounds = 40}};
        while (saps.next()) {
            net.sleep_until(net.now() + seconds(1));
            saps.mix(model);
        }
        CHECK(saps.round() == 40);
        ++ended;
    });
    CHECK(refused == 1);
    CHECK(ended == 4);
}

TEST_CASE("gossip: a rank that restarts has ended, and names nobody else") {
    int ended = 0;
    const int refused = restarted(restarts_rank_2(), [&](endpoint& net, std::vector<double>& model) {
        group workers{net, ring{}, {.timeout = seconds(10)}};
        gossip replica{workers, ring_neighbours{}};
        const auto mix = [&] {
            for (int round = 0; round < 40; ++round) {
                net.sleep_until(net.now() + seconds(1));
                replica.mix(model);
            }
        };
        try {
            mix();
        } catch (const error& failed) {
            ++ended;
            CHECK(failed.culprit() == 2);
        }
    });
    CHECK(refused == 1);
    CHECK(ended == 4);
}

/// How many messages rank 3 posts in so many rounds, in the last of which one of its values is `last`.
std::uint64_t sent_by_rank_3(int rounds, double last) {
    const auto report = simulated::run(4, {}, [&](endpoint& net) {
        group workers{net, ring{}};
        gossip replica{workers, ring_neighbours{}};
        std::vector<double> model(9, 1);
        try {
            for (int round = 1; round <= rounds; ++round) {
                if (net.rank() == 3 && round == rounds) model[7] = last;
                replica.mix(model);
            }
        } catch (const invalid_value&) {
        }
    });
    std::uint64_t messages = 0;
    for (const auto& link : report.links)
        if (link.source == 3) messages += link.messages;
    return messages;
}

TEST_CASE("gossip: a value that is not finite is refused before anything is sent") {
    CHECK(sent_by_rank_3(3, 1) == sent_by_rank_3(2, 1) + 2);
    CHECK(sent_by_rank_3(3, std::nan("")) == sent_by_rank_3(2, 1));
}

/// Weights whose sum is 1 but for rounding, and above.
struct rounded_up : ring_neighbours {
    struct bound {
        ring_neighbours::bound inner;
        void fill(std::uint64_t round, rank_t rank, mixing_row& row) {
            inner.fill(round, rank, row);
            row.own_weight += 5e-13;
        }
    };
    bound bind(int size, random_key key) const { return {ring_neighbours::bind(size, key)}; }
};

TEST_CASE("gossip: a sum that rounds above the largest number is named in the next round") {
    simulated::run(3, {}, [](endpoint& net) {
        group workers{net, ring{}};
        gossip replica{workers, rounded_up{}};
        std::vector<double> model(4, std::numeric_limits<double>::max());
        replica.mix(model);
        CHECK(replica.round() == 1);
        CHECK(std::isinf(model[0]));
        CHECK_THROWS_WITH_AS(replica.mix(model), doctest::Contains("has a value that is not finite at coordinate 0"),
                             invalid_value);
    });
    // Of equal weights, and of pairs, it does not.
    simulated::run(4, {}, [](endpoint& net) {
        group workers{net, ring{}};
        gossip thirds{workers, ring_neighbours{}};
        gossip halves{workers, random_matching{}};
        std::vector<float> model(4, std::numeric_limits<float>::max());
        thirds.mix(model);
        halves.mix(model);
        CHECK(model == std::vector<float>(4, std::numeric_limits<float>::max()));
    });
}

}  // namespace gossip_survivors_cases
