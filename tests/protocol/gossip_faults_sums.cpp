// Push-sum and gossip by differences under every kind of fault: what a rank keeps besides its model belongs to the same
// round as the model.
#include <rill/collective/group.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace testing = rill::testing;

namespace {

constexpr std::size_t dimension = 16;
constexpr rill::topology::ring_neighbours halves{.own = 0.5};
constexpr rill::compress::top_k some{.count = 5};
using models = std::vector<std::vector<double>>;

#ifdef RILL_TEST_SANITIZED
constexpr std::uint64_t runs = 200;
#else
constexpr std::uint64_t runs = 900;
#endif

/// Whole numbers. All weights are powers of two, so that sums are exact in any order.
models first_models(int ranks) {
    models all(static_cast<std::size_t>(ranks), std::vector<double>(dimension));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i) all[rank][i] = static_cast<double>(rill::mix64(rank, i) % 100);
    return all;
}

/// A circle, and from rank 0 two edges more.
rill::topology::directed graph_of(int ranks) {
    rill::topology::directed graph;
    for (rill::rank_t rank = 0; rank < ranks && ranks > 1; ++rank) graph.edges.push_back({rank, (rank + 1) % ranks});
    if (ranks > 3) graph.edges.insert(graph.edges.end(), {{0, 2}, {0, 3}});
    return graph;
}

template <class Mix>
models mixed(const Mix& mixing, const models& all) {
    models made = all;
    auto bound = mixing.bind(static_cast<int>(all.size()), {});
    rill::mixing_row row;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        bound.fill(0, static_cast<rill::rank_t>(rank), row);
        for (std::size_t i = 0; i < all[rank].size(); ++i) {
            made[rank][i] = row.own_weight * all[rank][i];
            for (const auto& [peer, weight] : row.senders)
                made[rank][i] += weight * all[static_cast<std::size_t>(peer)][i];
        }
    }
    return made;
}

/// What all ranks have after a number of rounds, without messages: the model, and behind it what else they keep.
models plain_push(int ranks, std::uint64_t rounds) {
    models all = first_models(ranks);
    for (auto& model : all) model.push_back(1);
    for (std::uint64_t round = 0; round < rounds; ++round) all = mixed(graph_of(ranks), all);
    return all;
}
models plain_differences(int ranks, std::uint64_t rounds) {
    models all = first_models(ranks), replicas(all.size(), std::vector<double>(dimension)), sums = replicas;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            auto codec = some.bind<double>(dimension);
            std::vector<double> gap(dimension);
            for (std::size_t i = 0; i < dimension; ++i) gap[i] = all[rank][i] - replicas[rank][i];
            const auto sent = codec.encode(std::span<const double>(gap));
            for (std::size_t j = 0; j < sent.count(); ++j) replicas[rank][sent.indices()[j]] += sent.values()[j];
        }
        sums = mixed(halves, replicas);
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            for (std::size_t i = 0; i < dimension; ++i) all[rank][i] += 0.5 * (sums[rank][i] - replicas[rank][i]);
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank].insert(all[rank].end(), replicas[rank].begin(), replicas[rank].end());
        all[rank].insert(all[rank].end(), sums[rank].begin(), sums[rank].end());
    }
    return all;
}

/// Up to ten rounds on each rank: `mix` makes one, `has(wanted)` tells whether the rank has just that.
template <class Mix, class Has, class Wanted>
testing::call_result play(std::uint64_t last, testing::rank_record& mine, const Mix& mix, const Has& has,
                          const Wanted& wanted) {
    try {
        for (std::uint64_t round = 0; round < last; ++round) mix();
    } catch (const rill::error&) {
        if (!has(wanted())) mine.complaints.push_back("what it has is of no whole round");
        throw;
    }
    return {.is_exact = has(wanted())};
}

template <class OnOneRank>
void explore(const char* name, const OnOneRank& on_one_rank) {
    testing::protocol_test test(name, {.most_ranks = 8});
    const auto body = [&](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.restarts() > 0) return;
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        mine.attempt({.name = "rounds"}, [&] { return on_one_rank(net, 1 + of.seed % 10, mine); });
    };
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < runs / std::size(testing::every_fault_kind); ++seed) {
            const std::string report = test.run(kind, seed, body);
            CHECK_MESSAGE(report.empty(), testing::name(kind), ": ", report);
        }
}

bool equal(const std::vector<double>& wanted, std::size_t from, std::span<const double> seen) {
    return std::equal(seen.begin(), seen.end(), wanted.begin() + static_cast<std::ptrdiff_t>(from));
}

}  // namespace

TEST_CASE("gossip under faults: models and weights of push-sum belong together") {
    explore("push", [](auto& net, std::uint64_t last, testing::rank_record& mine) {
        rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10)}};
        rill::gossip replica{workers, graph_of(net.size())};
        const auto rank = static_cast<std::size_t>(net.rank());
        std::vector<double> model = first_models(net.size())[rank];
        const auto mix = [&] { (net.compute(1), replica.mix(model)); };
        const auto has = [&](const models& all) {
            return equal(all[rank], 0, model) && all[rank].back() == replica.weight();
        };
        return play(last, mine, mix, has, [&] { return plain_push(net.size(), replica.round()); });
    });
}

TEST_CASE("gossip under faults: models, replicas and sums of differences belong together") {
    explore("differences", [](auto& net, std::uint64_t last, testing::rank_record& mine) {
        rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10)}};
        rill::gossip replica{workers, halves};
        const auto rank = static_cast<std::size_t>(net.rank());
        std::vector<double> model = first_models(net.size())[rank];
        auto codec = rill::compress::difference{some, 0.5}.bind<double>(dimension);
        const auto mix = [&] { (net.compute(1), replica.mix(model, codec)); };
        const auto has = [&](const models& all) {
            return equal(all[rank], 0, model) && equal(all[rank], dimension, codec.replica()) &&
                   equal(all[rank], 2 * dimension, codec.neighbours());
        };
        return play(last, mine, mix, has, [&] { return plain_differences(net.size(), replica.round()); });
    });
}
