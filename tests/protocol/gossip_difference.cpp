// Gossip by differences, against a plain program in which each rank knows the replicas of all others.
#include "../support/allocations.hpp"

#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/metropolis.hpp>
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
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

using rill::compress::difference;
using rill::compress::encoded;
using rill::compress::keep_all;
using rill::compress::random_mask;
using rill::compress::top_k;
using rill::simulated::endpoint;
using rill::topology::metropolis;
using rill::topology::ring;
using rill::topology::ring_neighbours;

namespace masks {

/// A random mask whose values count 1 / density times, so that it is unbiased; and its error is large.
struct scaled {
    random_mask mask{};

    template <class Inner>
    struct codec : Inner {
        static constexpr bool chooses_alike = true;
        double factor;
        std::vector<double> values{};

        codec(Inner inner, double by) : Inner(std::move(inner)), factor(by) {}
        auto encode(std::span<const double> input) {
            const auto chosen = Inner::encode(input);
            values.assign(chosen.values().begin(), chosen.values().end());
            for (double& each : values) each *= factor;
            return rill::stream_view<double, std::uint32_t>(chosen.range(), std::span<const double>(values));
        }
    };

    template <class T, class Index>
    auto bind(std::size_t dimension) const {
        return codec<decltype(mask.bind<T, Index>(dimension))>(mask.bind<T, Index>(dimension), 1 / mask.density);
    }
    friend bool operator==(const scaled&, const scaled&) = default;
};

}  // namespace masks

namespace {

constexpr std::size_t dimension = 60;
using models = std::vector<std::vector<double>>;

/// Where the models of the ranks are led to.
double center(std::size_t rank, std::size_t i) { return static_cast<double>(rill::mix64(rank, i) % 200) / 100; }

/// A step on the rank's own (x - center)² / 2.
void descend(std::vector<double>& model, std::size_t rank, double rate) {
    for (std::size_t i = 0; i < model.size(); ++i) model[i] -= rate * (model[i] - center(rank, i));
}

struct job {
    int ranks = 5;
    int rounds = 12;
    double rate = 0.1;
    bool starts = true;  ///< replicas start where models do
};

template <class Run, class Mix, class Policy>
models mixed(Run run, const Mix& mixing, const Policy& policy, const job& what) {
    models all(static_cast<std::size_t>(what.ranks), std::vector<double>(dimension, 1));
    run(what.ranks, [&](auto& net) {
        rill::group workers{net, ring{}, {.seed = 11}};
        rill::gossip replica{workers, mixing};
        const auto self = static_cast<std::size_t>(net.rank());
        auto codec = policy.template bind<double>(dimension);
        if (what.starts) codec.start_at(all[self]);
        for (int round = 0; round < what.rounds; ++round) {
            descend(all[self], self, what.rate);
            replica.mix(all[self], codec);
        }
    });
    return all;
}

/// Without messages: every rank sees the replicas of all.
template <class Mix, class Policy>
models plain(const Mix& mixing, const Policy& policy, std::optional<double> step, const job& what) {
    const auto ranks = static_cast<std::size_t>(what.ranks);
    models all(ranks, std::vector<double>(dimension, 1)), replicas(ranks, std::vector<double>(dimension, 1));
    if (!what.starts) replicas.assign(ranks, std::vector<double>(dimension, 0));
    auto bound = mixing.bind(what.ranks, {});
    std::vector<decltype(policy.template bind<double>(dimension))> codecs;
    for (std::size_t rank = 0; rank < ranks; ++rank) codecs.push_back(policy.template bind<double>(dimension));
    std::vector<rill::mixing_row> rows(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) bound.fill(0, static_cast<rill::rank_t>(rank), rows[rank]);
    const auto neighbours = [&](std::size_t rank, std::size_t i) {
        double sum = rows[rank].own_weight * replicas[rank][i];
        for (const auto& from : rows[rank].senders)
            sum += from.weight * replicas[static_cast<std::size_t>(from.peer)][i];
        return sum;
    };
    for (int round = 0; round < what.rounds; ++round) {
        models moved = replicas;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            descend(all[rank], rank, what.rate);
            std::vector<double> gap(dimension);
            for (std::size_t i = 0; i < dimension; ++i)
                gap[i] = all[rank][i] - replicas[rank][i] + (step ? 0 : neighbours(rank, i) - replicas[rank][i]);
            codecs[rank].begin(static_cast<std::uint64_t>(round));
            const auto sent = codecs[rank].encode(std::span<const double>(gap));
            for (std::size_t j = 0; j < sent.count(); ++j)
                moved[rank][sent.is_dense() ? j : sent.indices()[j]] += sent.values()[j];
        }
        replicas = moved;
        for (std::size_t rank = 0; rank < ranks; ++rank)
            for (std::size_t i = 0; i < dimension; ++i)
                all[rank][i] =
                    step ? all[rank][i] + *step * (neighbours(rank, i) - replicas[rank][i]) : replicas[rank][i];
    }
    return all;
}

const auto simulated = [](int ranks, auto body) { rill::simulated::run(ranks, {}, body); };
const auto threads = [](int ranks, auto body) { rill::in_process::run(ranks, body); };

void check_close(const models& a, const models& b) {
    double worst = 0;
    for (std::size_t rank = 0; rank < a.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i) worst = std::max(worst, std::abs(a[rank][i] - b[rank][i]));
    CHECK(worst < 1e-11);
}

double distance(const models& all) {
    double sum = 0;
    for (std::size_t i = 0; i < dimension; ++i) {
        double mean = 0;
        for (const auto& model : all) mean += model[i] / static_cast<double>(all.size());
        for (const auto& model : all) sum += (model[i] - mean) * (model[i] - mean);
    }
    return std::sqrt(sum);
}

const metropolis tree{.edges = {{0, 1}, {1, 2}, {1, 3}, {3, 4}}};

}  // namespace

TEST_CASE("gossip by differences: CHOCO-SGD and DCD-PSGD are those of a plain program") {
    const top_k some{.density = 0.2};
    for (const job& what : {job{}, job{.starts = false}}) {
        check_close(mixed(simulated, ring_neighbours{}, difference{some, 0.4}, what),
                    plain(ring_neighbours{}, some, 0.4, what));
        check_close(mixed(simulated, tree, difference{some, 0.4}, what), plain(tree, some, 0.4, what));
        check_close(mixed(simulated, ring_neighbours{}, difference{some}, what),
                    plain(ring_neighbours{}, some, {}, what));
    }
    for (const int ranks : {1, 2, 3})
        check_close(mixed(threads, ring_neighbours{}, difference{some, 0.4}, {.ranks = ranks}),
                    plain(ring_neighbours{}, some, 0.4, {.ranks = ranks}));
    CHECK(mixed(simulated, tree, difference{some, 0.4}, {}) == mixed(threads, tree, difference{some, 0.4}, {}));
}

TEST_CASE("gossip by differences: a codec that keeps all makes D-PSGD") {
    const models seen = mixed(simulated, ring_neighbours{}, difference{keep_all{}}, {});
    models all(5, std::vector<double>(dimension, 1));
    for (int round = 0; round < 12; ++round) {
        const models before = all;
        for (std::size_t rank = 0; rank < 5; ++rank)
            for (std::size_t i = 0; i < dimension; ++i)
                all[rank][i] = (before[(rank + 4) % 5][i] + before[rank][i] + before[(rank + 1) % 5][i]) / 3 -
                               0.1 * (before[rank][i] - center(rank, i));
    }
    check_close(seen, all);
}

TEST_CASE("gossip by differences: models come together at their mean, which stays") {
    const auto gathered = [](const auto& policy, int rounds) {
        models all(8, std::vector<double>(dimension));
        std::vector<double> mean(dimension);
        for (std::size_t rank = 0; rank < 8; ++rank)
            for (std::size_t i = 0; i < dimension; ++i) mean[i] += (all[rank][i] = center(rank, i)) / 8;
        const double before = distance(all);
        rill::simulated::run(8, {}, [&](endpoint& net) {
            rill::group workers{net, ring{}};
            rill::gossip replica{workers, ring_neighbours{}};
            auto codec = policy.template bind<double>(dimension);
            std::vector<double>& model = all[static_cast<std::size_t>(net.rank())];
            for (int round = 0; round < rounds; ++round) replica.mix(model, codec);
        });
        for (std::size_t i = 0; i < dimension; ++i) {
            double sum = 0;
            for (const auto& model : all) sum += model[i] / 8;
            CHECK(sum == doctest::Approx(mean[i]));
        }
        return distance(all) / before;
    };
    CHECK(gathered(difference{top_k{.density = 0.1}, 0.2}, 500) < 1e-3);
    CHECK(gathered(difference{random_mask{.density = 0.3}, 0.2}, 500) < 1e-3);
    // Rounded differences: all apply what the receivers decode.
    CHECK(gathered(difference{encoded{keep_all{}, rill::compress::qsgd{.bits = 4}}, 0.5}, 300) < 1e-3);
    CHECK(
        gathered(difference{encoded{top_k{.density = 0.2}, rill::compress::bf16{}, rill::compress::packed_gaps{}}, 0.3},
                 300) < 1e-3);
}

TEST_CASE("gossip by differences: the sum that a rank keeps is that of its neighbours' replicas") {
    models replicas(5), sums(5);
    rill::simulated::run(5, {}, [&](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, tree};
        const auto self = static_cast<std::size_t>(net.rank());
        auto codec =
            difference{encoded{top_k{.density = 0.3}, rill::compress::qsgd{.bits = 4}}, 0.3}.bind<double>(dimension);
        std::vector<double> model(dimension, 1);
        for (int round = 0; round < 20; ++round) {
            descend(model, self, 0.1);
            replica.mix(model, codec);
        }
        replicas[self].assign(codec.replica().begin(), codec.replica().end());
        sums[self].assign(codec.neighbours().begin(), codec.neighbours().end());
    });
    auto bound = tree.bind(5, {});
    rill::mixing_row row;
    for (std::size_t rank = 0; rank < 5; ++rank) {
        bound.fill(0, static_cast<rill::rank_t>(rank), row);
        for (std::size_t i = 0; i < dimension; ++i) {
            double sum = row.own_weight * replicas[rank][i];
            for (const auto& from : row.senders) sum += from.weight * replicas[static_cast<std::size_t>(from.peer)][i];
            CHECK(sums[rank][i] == doctest::Approx(sum).epsilon(1e-12));
        }
    }
}

TEST_CASE("gossip by differences: k pairs to each neighbour and back") {
    rill::simulated::run(5, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, ring_neighbours{}};
        auto codec = difference{top_k{.count = 50}, 0.4}.bind(1000);
        std::vector<float> model(1000, 1);
        for (std::size_t i = 0; i < model.size(); ++i) model[i] += static_cast<float>(i);
        for (int round = 0; round < 3; ++round) {
            const auto& done = replica.mix(model, codec);
            CHECK(done.contributors == 3);
            CHECK(done.weight == doctest::Approx(1));
            CHECK(done.in[0].rank < done.in[1].rank);
            CHECK(done.wire.messages_sent == 2);
            CHECK(done.wire.bytes_sent == done.wire.bytes_received);
            CHECK(done.wire.bytes_sent - 2 * 50 * (sizeof(float) + sizeof(std::uint32_t)) == 2 * 96);
        }
    });
}

TEST_CASE("DCD-PSGD: with a mask of large error it diverges, where CHOCO-SGD does not") {
    const masks::scaled quarter{{.density = 0.25, .seed = 3}};
    const job what{.ranks = 8, .rounds = 200, .rate = 0.05};
    CHECK(distance(mixed(simulated, ring_neighbours{}, difference{quarter}, what)) > 1e6);
    const random_mask mask{.density = 0.25, .seed = 3};
    CHECK(distance(mixed(simulated, ring_neighbours{}, difference{mask, 0.3}, what)) < 10);
}

TEST_CASE("gossip by differences: another start, step or codec on one rank is a mismatch") {
    const auto fails = [](const char* why, auto bind) {
        int failures = 0;
        rill::simulated::run(4, {}, [&](endpoint& net) {
            rill::group workers{net, ring{}, {.timeout = rill::seconds(10)}};
            rill::gossip replica{workers, ring_neighbours{}};
            std::vector<double> model(dimension, 1);
            auto codec = bind(net.rank() == 2);
            try {
                replica.mix(model, codec);
            } catch (const rill::mismatch& e) {
                CHECK(std::string(e.what()).find(why) != std::string::npos);
                CHECK((e.culprit() == 2 || e.notice().other == 2));
                ++failures;
            }
            CHECK(model == std::vector<double>(dimension, 1));
        });
        CHECK(failures == 4);
    };
    fails("another step of its codec", [](bool other) {
        return difference{top_k{.density = 0.1}, other ? 0.3 : 0.4}.bind<double>(dimension);
    });
    fails("another start_at of its codec", [](bool other) {
        auto codec = difference{top_k{.density = 0.1}, 0.4}.bind<double>(dimension);
        codec.start_at(std::vector<double>(dimension, other ? 2 : 1));
        return codec;
    });
    fails("another codec", [](bool other) {
        return difference{encoded{keep_all{}, rill::compress::qsgd{.bits = other ? 2 : 4}}, 0.4}.bind<double>(
            dimension);
    });
}

TEST_CASE("gossip by differences: a failure leaves model and replicas as before the round") {
    models first(4, std::vector<double>(dimension));
    for (std::size_t rank = 0; rank < 4; ++rank)
        for (std::size_t i = 0; i < dimension; ++i) first[rank][i] = center(rank, i);
    int refused = 0;
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = rill::seconds(10)}};
        rill::gossip replica{workers, ring_neighbours{}};
        std::vector<double> model = first[static_cast<std::size_t>(net.rank())];
        auto codec = difference{top_k{.density = 0.5}, 0.4}.bind<double>(dimension);
        if (net.rank() == 1) model[7] = std::numeric_limits<double>::quiet_NaN();
        try {
            replica.mix(model, codec);
        } catch (const rill::error& e) {
            CHECK(e.culprit() == 1);
            CHECK(std::string(e.what()).find("coordinate 7") != std::string::npos);
            ++refused;
        }
        CHECK(replica.round() == 0);
        CHECK(std::count(codec.replica().begin(), codec.replica().end(), 0.0) == dimension);
        CHECK(std::count(codec.neighbours().begin(), codec.neighbours().end(), 0.0) == dimension);
        if (net.rank() != 1) CHECK(model == first[static_cast<std::size_t>(net.rank())]);
    });
    CHECK(refused == 4);
}

#ifndef RILL_TEST_SANITIZED

TEST_CASE("gossip by differences: steady rounds allocate nothing") {
    unsigned long counted = ~0UL;
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, ring_neighbours{}};
        const auto self = static_cast<std::size_t>(net.rank());
        auto some = difference{top_k{.count = 10}, 0.2}.bind<double>(dimension);
        auto rounded = difference{encoded{keep_all{}, rill::compress::qsgd{.bits = 8}}, 0.2}.bind<double>(dimension);
        std::vector<double> model(dimension);
        const auto rounds = [&](int count) {
            for (int round = 0; round < count; ++round) {
                descend(model, self, 0.1);
                replica.mix(model, some);
                replica.mix(model, rounded);
            }
        };
        rounds(100);
        for (int times = 0; times < 5; ++times) {  // the least of several attempts: a queue can be longer than before
            rill::barrier(workers);
            const unsigned long before = allocations();
            rounds(10);
            rill::barrier(workers);
            if (net.rank() == 0) counted = std::min(counted, allocations() - before);  // of all, on one thread
        }
    });
    CHECK(counted == 0);
}

#endif
