// Gossip with a coordinator: against a plain program, and what becomes of ranks that are slow, fail, leave or come.
#include <rill/adapt/boost_matching.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using rill::simulated::endpoint;
using rill::topology::random_matching;
using rill::topology::ring;

namespace {

constexpr std::size_t dimension = 30;
constexpr rill::compress::random_mask mask{.density = 0.4, .seed = 5};
constexpr rill::duration timeout = rill::seconds(10);
using models = std::vector<std::vector<double>>;

/// Whole numbers that can be halved often.
models first_models(int ranks) {
    models all(static_cast<std::size_t>(ranks), std::vector<double>(dimension));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i)
            all[rank][i] = static_cast<double>(rill::mix64(rank, i) % 1000 << 20U);
    return all;
}
std::vector<double> sum_of(const models& all) {
    std::vector<double> sum(dimension);
    for (const auto& model : all)
        for (std::size_t i = 0; i < dimension; ++i) sum[i] += model[i];
    return sum;
}
std::vector<double>& of(models& all, rill::rank_t rank) { return all[static_cast<std::size_t>(rank)]; }

/// The models after so many rounds, without messages. The seed of a round's mask is drawn by the group's seed.
template <class Mix>
models plain(const Mix& mixing, models all, std::uint64_t rounds) {
    const auto key = rill::random_key{0}.derive(rill::fingerprint("gossip"));
    auto bound = mixing.bind(static_cast<int>(all.size()), key);
    auto codec = mask.bind<double>(dimension);
    rill::mixing_row row;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const models before = all;
        codec.begin(key.derive(round).value >> 32U);
        std::vector<double> ones(codec.coded_dimension(), 1.0), marks(dimension);
        codec.write_back(std::span<const double>(ones), marks);
        for (rill::rank_t rank = 0; rank < static_cast<rill::rank_t>(all.size()); ++rank) {
            bound.fill(round, rank, row);
            if (row.senders.empty()) continue;
            const auto& other = before[static_cast<std::size_t>(row.senders[0].peer)];
            for (std::size_t i = 0; i < dimension; ++i)
                if (marks[i] != 0) of(all, rank)[i] = (of(all, rank)[i] + other[i]) / 2;
        }
    }
    return all;
}

template <class Mix>
void all_rounds(auto& net, const Mix& mixing, const rill::coordinated& options, std::vector<double>& model) {
    rill::group workers{net, ring{}, {.timeout = timeout}};
    rill::gossip saps{workers, mixing, options};
    auto codec = mask.bind<double>(dimension);
    while (saps.next()) saps.mix(model, codec);
}

/// Runs `body(net, saps, model)` on the ranks of a simulated network; returns the models.
template <class Body>
models simulated(int ranks, const rill::coordinated& options, Body body, const rill::simulated::network& network = {}) {
    models all = first_models(ranks);
    rill::simulated::run(ranks, network, [&](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = timeout}};
        rill::gossip saps{workers, random_matching{}, options};
        body(net, saps, of(all, net.rank()));
    });
    return all;
}
void pause(endpoint& net, rill::duration time) { net.sleep_until(net.now() + time); }

TEST_CASE("coordinated gossip: a mixing that gives more than a peer is refused") {
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = timeout}};
        rill::gossip saps{workers, rill::topology::ring_neighbours{}, rill::coordinated{.rounds = 3}};
        std::vector<double> model(3, net.rank());
        const auto run = [&] {
            while (saps.next()) saps.mix(model);
        };
        if (net.rank() == 0)
            CHECK_THROWS_WITH_AS(run(), doctest::Contains("one peer with half of the weight"), rill::error);
        else
            CHECK_THROWS_AS(run(), rill::error);
    });
}

TEST_CASE("coordinated gossip: at the end the coordinator repeats its verdict for as long as a round may take") {
    rill::simulated::network network{.latency = rill::milliseconds(1)};
    network.faults.faults = {rill::faults::cut(0, 1).after(14), rill::faults::heal(0, 1).after(17)};
    models all{std::vector<double>(3, 1024), std::vector<double>(3, 4096)};
    rill::simulated::run(2, network, [&](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = rill::seconds(1)}};
        rill::gossip saps{workers, random_matching{}, rill::coordinated{.rounds = 6, .patience = rill::seconds(20)}};
        while (saps.next()) saps.mix(of(all, net.rank()));
    });
    CHECK(all[0] == std::vector<double>(3, 2560));
    CHECK(all[1] == all[0]);
}

TEST_CASE("coordinated gossip: rank 0 joins before its first round, and after the last") {
    for (const int ranks : {1, 3})
        rill::simulated::run(ranks, {}, [&](endpoint& net) {
            rill::group workers{net, ring{}, {.timeout = timeout}};
            rill::gossip saps{workers, random_matching{}, rill::coordinated{.rounds = 4}};
            std::vector<double> model(3, net.rank());
            if (net.rank() == 0 && ranks > 1) CHECK(saps.join(model) != rill::no_rank);
            while (saps.next()) saps.mix(model);
            if (net.rank() == 0) CHECK(saps.join(model) == rill::no_rank);
        });
}

}  // namespace

TEST_CASE("coordinated gossip: models are those of a plain program, and their sum stays") {
    for (const int ranks : {1, 2, 3, 6}) {
        CAPTURE(ranks);
        models seen = first_models(ranks);
        rill::simulated::run(ranks, {}, [&](endpoint& net) {
            all_rounds(net, random_matching{}, {.rounds = 12}, of(seen, net.rank()));
        });
        CHECK(seen == plain(random_matching{}, first_models(ranks), 12));
        CHECK(sum_of(seen) == sum_of(first_models(ranks)));
        models of_threads = first_models(ranks);
        rill::in_process::run(
            ranks, [&](auto& net) { all_rounds(net, random_matching{}, {.rounds = 12}, of(of_threads, net.rank())); });
        CHECK(of_threads == seen);
    }
}

TEST_CASE("coordinated gossip: only the coordinator needs the links") {
    const int ranks = 5;
    rill::topology::bandwidth_matching fast{
        .links = std::vector<double>(ranks * ranks, 1.0), .least = 0.5, .matcher = rill::adapt::boost_matching{}};
    models seen = first_models(ranks);
    rill::simulated::run(ranks, {}, [&](endpoint& net) {
        const auto own = net.rank() == 0 ? fast : rill::topology::bandwidth_matching{};
        all_rounds(net, own, {.rounds = 9}, of(seen, net.rank()));
    });
    CHECK(seen == plain(fast, first_models(ranks), 9));
}

TEST_CASE("coordinated gossip: a coordinator that does not train mixes nothing, and its rank's model stays") {
    const models seen = simulated(6, {.rounds = 20, .trains = false}, [](endpoint& net, auto& saps, auto& model) {
        int rounds = 0;
        for (; saps.next(); ++rounds) saps.mix(model);
        CHECK(rounds == (net.rank() == 0 ? 0 : 20));
    });
    CHECK(seen[0] == first_models(6)[0]);
    CHECK(sum_of(seen) == sum_of(first_models(6)));
    CHECK(seen[1] != first_models(6)[1]);
}

TEST_CASE("coordinated gossip: a worker and the coordinator exchange at most 256 bytes per round") {
    simulated(8, {.rounds = 40}, [](endpoint&, auto& saps, auto& model) {
        auto codec = mask.bind<double>(dimension);
        std::uint64_t before = 0;
        while (saps.next()) {
            const rill::round_receipt& done = saps.mix(model, codec);
            const auto so_far = saps.with_coordinator();
            const std::uint64_t bytes = so_far.bytes_sent + so_far.bytes_received;
            if (saps.round() > 1 && saps.round() < 40) CHECK(bytes - before == 192);
            before = bytes;
            // With its peer a header each way, and the values.
            if (saps.round() < 40)
                CHECK(done.wire.bytes_sent + done.wire.bytes_received == 192 + 2 * (96 + 8 * codec.coded_dimension()));
        }
        CHECK(before <= 40 * 256);
    });
}

TEST_CASE("coordinated gossip: the receipt lists both models, or the peer of a skipped exchange") {
    // Rank 2 is late in round 3, for its peer but not for the coordinator.
    int skipped = 0;
    const models seen = simulated(4, {.rounds = 8}, [&](endpoint& net, auto& saps, auto& model) {
        while (saps.next()) {
            const std::uint64_t round = saps.round();
            if (net.rank() == 2 && round == 3) pause(net, rill::seconds(25));
            const rill::round_receipt& done = saps.mix(model);
            CHECK(done.operation_number == round);
            CHECK(done.weight == 1);
            const bool is_skipped = !done.missing.empty();
            CHECK(done.in.size() == (is_skipped ? 1U : 2U));
            CHECK(std::is_sorted(done.in.begin(), done.in.end(), [](auto& a, auto& b) { return a.rank < b.rank; }));
            for (const auto& each : done.in) CHECK(each.weight == (is_skipped ? 1 : 0.5));
            if (!is_skipped) continue;
            CHECK(round == 3);
            CHECK((net.rank() == 2 || done.missing[0] == 2));
            ++skipped;
        }
    });
    CHECK(skipped == 2);
    CHECK(sum_of(seen) == sum_of(first_models(4)));
}

TEST_CASE("coordinated gossip: a silent worker is out, learns it, and comes back with the model of another") {
    int times_out = 0;
    models seen =
        simulated(5, {.rounds = 30, .patience = rill::seconds(30)}, [&](endpoint& net, auto& saps, auto& model) {
            while (saps.next()) {
                pause(net, rill::seconds(5));
                if (net.rank() == 2 && saps.round() == 4) {
                    const auto before = model;
                    pause(net, rill::seconds(60));
                    CHECK_THROWS_WITH_AS(
                        saps.mix(model),
                        doctest::Contains("rank 2 has not reported its round within 30.000000 s, and the "
                                          "others go on without it; join takes it back"),
                        rill::timeout);
                    CHECK(model == before);
                    const rill::rank_t giver = saps.join(model);
                    CHECK(giver >= 0);
                    CHECK(giver != 2);
                    CHECK(model != before);
                    CHECK(saps.round() > 5);
                    ++times_out;
                    continue;
                }
                saps.mix(model);
            }
            CHECK(saps.round() == 30);
        });
    CHECK(times_out == 1);
    CHECK(seen[2] != first_models(5)[2]);
}

TEST_CASE("coordinated gossip: workers leave, and the run is over when the last one has left") {
    models seen = simulated(5, {}, [](endpoint& net, auto& saps, auto& model) {
        const auto last = static_cast<std::uint64_t>(3 * net.rank() + 1);
        while (saps.next()) {
            if (saps.round() == last)
                saps.leave();
            else
                saps.mix(model);
        }
        CHECK(saps.round() == last);
    });
    CHECK(sum_of(seen) == sum_of(first_models(5)));
}

TEST_CASE("coordinated gossip: a worker leaves and comes back") {
    simulated(4, {.rounds = 20}, [](endpoint& net, auto& saps, auto& model) {
        while (saps.next()) {
            pause(net, rill::seconds(1));
            if (net.rank() == 3 && saps.round() == 5) {
                saps.leave();
                pause(net, rill::seconds(4));
                CHECK(saps.join(model) != rill::no_rank);
                CHECK(saps.round() > 7);
                continue;
            }
            saps.mix(model);
        }
        CHECK(saps.round() == 20);
    });
}

TEST_CASE("coordinated gossip: a rank that joins with a model of another size is named, and so is the giver") {
    simulated(3, {.rounds = 200}, [](endpoint& net, auto& saps, auto& model) {
        const auto run = [&] {
            while (saps.next()) {
                pause(net, rill::seconds(1));
                if (net.rank() != 2 || saps.round() != 4) {
                    saps.mix(model);
                    continue;
                }
                saps.leave();
                std::vector<double> shorter(dimension - 1);
                saps.join(shorter);
            }
        };
        CHECK_THROWS_WITH_AS(run(),
                             doctest::Contains("rank 2 joins with a model of 29 values, and rank 0, which gives it its "
                                               "own, has 30"),
                             rill::mismatch);
    });
}

TEST_CASE("coordinated gossip: others go on without workers that die") {
    for (const bool trains : {true, false})
        for (std::uint64_t messages = 20; messages < 60; messages += 3) {
            rill::simulated::network network;
            network.faults.faults = {rill::faults::kill(2).after(messages)};
            int ended = 0;
            simulated(
                5, {.rounds = 15, .trains = trains},
                [&](endpoint& net, auto& saps, auto& model) {
                    while (saps.next()) saps.mix(model);
                    ended += saps.round() == 15 || (net.rank() == 0 && !trains) ? 1 : 0;
                },
                network);
            CHECK(ended >= 4);
        }
}

TEST_CASE("coordinated gossip: the coordinator's end is a named error everywhere") {
    for (const bool dies : {true, false}) {
        rill::simulated::network network;
        if (dies) network.faults.faults = {rill::faults::kill(0).after(60)};
        int told = 0;
        models seen = simulated(
            4, {.rounds = 30},
            [&](endpoint& net, auto& saps, auto& model) {
                const auto mix_all = [&] {
                    while (saps.next() && (net.rank() != 0 || saps.round() < 9)) saps.mix(model);
                };
                if (net.rank() == 0) return mix_all();
                CHECK_THROWS_WITH_AS(mix_all(), doctest::Contains("rank 0, the coordinator, has "), rill::peer_failure);
                ++told;
            },
            network);
        CHECK(told == 3);
    }
}

TEST_CASE("coordinated gossip: a value that is not finite is named, and the rank may mix again") {
    const models seen = simulated(4, {.rounds = 10}, [](endpoint& net, auto& saps, auto& model) {
        while (saps.next()) {
            if (net.rank() == 1 && saps.round() == 4) {
                const double good = std::exchange(model[7], std::nan(""));
                CHECK_THROWS_WITH_AS(saps.mix(model),
                                     doctest::Contains("rank 1 has a value that is not finite at coordinate 7"),
                                     rill::invalid_value);
                model[7] = good;
            }
            saps.mix(model);
        }
    });
    CHECK(sum_of(seen) == sum_of(first_models(4)));
}

TEST_CASE("coordinated gossip: another dimension or codec is a mismatch that names both ranks") {
    const auto fails_by = [](auto mix, const char* why) {
        simulated(4, {.rounds = 30}, [&](endpoint& net, auto& saps, auto&) {
            const auto mix_all = [&] {
                while (saps.next()) mix(net, saps);
            };
            CHECK_THROWS_WITH_AS(mix_all(), doctest::Contains(why), rill::mismatch);
        });
    };
    fails_by(
        [](endpoint& net, auto& saps) {
            std::vector<float> model(net.rank() == 2 ? 11 : 10);
            saps.mix(model);
        },
        "values, rank ");
    fails_by(
        [](endpoint& net, auto& saps) {
            std::vector<float> model(10);
            auto codec = rill::compress::random_mask{.density = net.rank() == 1 ? 0.5 : 0.4}.bind(10);
            saps.mix(model, codec);
        },
        "with another density of its codec than rank ");
    CHECK_THROWS_WITH_AS(
        rill::simulated::run(
            3, {},
            [](endpoint& net) {
                rill::group workers{net, ring{}};
                rill::gossip saps{workers, random_matching{}, rill::coordinated{.trains = net.rank() != 1}};
            }),
        doctest::Contains("another choice of whether rank 0 trains"), rill::mismatch);
}

TEST_CASE("coordinated gossip: empty models, and calls out of order") {
    rill::simulated::run(3, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip saps{workers, random_matching{}, rill::coordinated{.rounds = 4}};
        std::vector<float> none;
        CHECK_THROWS_AS(saps.mix(none), rill::contract_violation);
        CHECK(saps.next());
        CHECK(saps.next());
        CHECK_THROWS_AS(saps.join(none), rill::contract_violation);
        saps.mix(none);
        while (saps.next()) saps.mix(none);
        CHECK(!saps.next());
        CHECK_THROWS_AS(saps.mix(none), rill::contract_violation);
    });
}
