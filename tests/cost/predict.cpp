#include <rill/cost/predict.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/cost/stream_messages.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "../collective/topologies.hpp"
#include "simulate.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

/// A star in which each message carries three parts.
struct star_in_parts : rill::topology::star {
    struct schedule {
        rill::topology::tree_schedule whole{};

        constexpr int parts() const { return 3; }
        constexpr int rounds() const { return whole.rounds(); }
        constexpr rill::action kind(int round) const { return whole.kind(round); }
        constexpr int sends(int round) const { return whole.sends(round); }
        constexpr rill::transfer send(int round, int i) const { return {whole.send(round, i).peer, {0, 3}}; }
        constexpr int receives(int round) const { return whole.receives(round); }
        constexpr rill::transfer receive(int round, int i) const { return {whole.receive(round, i).peer, {0, 3}}; }
        [[maybe_unused]] friend constexpr bool operator==(const schedule&, const schedule&) = default;
    };
    static constexpr const char* name = "star_in_parts";

    constexpr schedule all_reduce(int size, rill::rank_t rank) const {
        return {rill::topology::star::all_reduce(size, rank)};
    }
    [[maybe_unused]] friend constexpr bool operator==(star_in_parts, star_in_parts) = default;
};
static_assert(rill::Topology<star_in_parts>);

using namespace rill;

using support::outcome;
using support::simulate;

const simulated::network uneven{.latency = nanoseconds(12'345), .bandwidth = 123'456'789};

template <class Shape>
outcome simulate_dense(const Shape& shape, int ranks, std::size_t count, const simulated::network& net,
                       const std::vector<duration>& starts = {}) {
    std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks), std::vector<float>(count, 1.0F));
    return simulate(
        ranks, net, shape,
        [&](auto& workers) {
            auto& mine = data[static_cast<std::size_t>(workers.rank())];
            return all_reduce(workers, mine, mine);
        },
        starts);
}

/// Contributions of every `step`-th coordinate, the same on all ranks, so that the sizes of all unions are known.
struct every {
    std::size_t step = 1;

    double operator()(segment range, int) const {
        const auto below = [&](std::size_t end) { return (end + step - 1) / step; };
        return static_cast<double>(below(range.end) - below(range.begin));
    }
};

template <class Shape>
outcome simulate_sparse(const Shape& shape, int ranks, std::size_t dimension, std::size_t step,
                        const stream_codings& codings, const simulated::network& net) {
    std::vector<std::uint32_t> indices;
    for (std::size_t i = 0; i < dimension; i += step) indices.push_back(static_cast<std::uint32_t>(i));
    const std::vector<float> values(indices.size(), 1.0F);
    return simulate(ranks, net, shape, [&](auto& workers) {
        stream<float> mine, result;
        mine.assign({{0, dimension}, sparse_view<float, std::uint32_t>{indices, values}});
        return all_reduce(workers, mine, result, aggregate::sum{}, codings);
    });
}

void compare(const outcome& seen, const cost::prediction& predicted) {
    CHECK(seen.elapsed.ns == predicted.elapsed.ns);
    CHECK(seen.ranks == predicted.ranks);
}

}  // namespace

TEST_CASE("dense: the predicted time and traffic are those of the simulated network, to the nanosecond and the byte") {
    cases::for_each_topology([](const auto& shape) {
        CAPTURE(shape.name);
        for (int ranks = 1; ranks <= 17; ++ranks)
            for (const std::size_t count : {0U, 5U, 1000U}) {
                CAPTURE(ranks);
                CAPTURE(count);
                compare(simulate_dense(shape, ranks, count, uneven),
                        cost::predict_all_reduce(shape, ranks, cost::dense_messages<float>(count), uneven));
            }
    });
}

TEST_CASE("sparse: the prediction is exact where the unions are known, in frames of one part and of several") {
    const stream_codings bitmaps{.contribution = {.indices = index_coding::bitmap},
                                 .partial = {.indices = index_coding::bitmap},
                                 .copy = {.indices = index_coding::bitmap}};
    cases::for_each_topology([&](const auto& shape) {
        CAPTURE(shape.name);
        for (int ranks : {1, 2, 3, 5, 8, 13, 16, 17})
            for (const std::size_t dimension : {7U, 1003U})
                for (const stream_codings& codings : {stream_codings{}, bitmaps}) {
                    CAPTURE(ranks);
                    CAPTURE(dimension);
                    constexpr std::size_t step = 7;  // some folds become dense, others do not
                    cost::stream_messages messages(dimension, every{step}, codings);
                    compare(simulate_sparse(shape, ranks, dimension, step, codings, uneven),
                            cost::predict_all_reduce(shape, ranks, messages, uneven));
                }
    });
}

TEST_CASE("lossy codings: each part has a frame of its own, also in messages of several parts") {
    const coding rounded{.values = value_coding::qsgd4, .bucket = 64};
    const auto check = [](const auto& shape, int ranks, const stream_codings& codings) {
        CAPTURE(shape.name);
        CAPTURE(ranks);
        cost::stream_messages messages(1003, every{7}, codings);
        compare(simulate_sparse(shape, ranks, 1003, 7, codings, uneven),
                cost::predict_all_reduce(shape, ranks, messages, uneven));
    };
    for (const int ranks : {2, 5, 8})
        for (const stream_codings& codings : {stream_codings{.copy = rounded}, {.contribution = rounded}}) {
            check(topology::halving_doubling{}, ranks, codings);
            check(star_in_parts{}, ranks, codings);
        }
}

TEST_CASE("other collectives are predicted from their schedules too") {
    const topology::tree shape;
    for (const int ranks : {2, 7, 12}) {
        std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks), std::vector<float>(500, 1.0F));
        const outcome seen = simulate(ranks, uneven, shape, [&](auto& workers) {
            return broadcast(workers, data[static_cast<std::size_t>(workers.rank())], 1);
        });
        compare(seen, cost::predict(
                          ranks, [&](rank_t rank) { return shape.broadcast(ranks, rank, 1); },
                          cost::dense_messages<float>(500), uneven));
    }
}

TEST_CASE("a network may be given by its links alone") {
    const uniform_links links{{uneven.latency, uneven.bandwidth}};
    CHECK(cost::predict_all_reduce(topology::ring{}, 5, cost::dense_messages<float>(99), links) ==
          cost::predict_all_reduce(topology::ring{}, 5, cost::dense_messages<float>(99), uneven));
}

TEST_CASE("links of several kinds, which stay busy over rounds, and cards that limit sending") {
    const grouped_links slow_between{.group = 3,
                                     .inside = {.latency = nanoseconds(700), .bandwidth = 4'000'000'000},
                                     .between = {.latency = nanoseconds(100), .bandwidth = 3'000'000}};
    const auto card = [](rank_t) { return network_card{.send = 50'000'000}; };
    cases::for_each_topology([&](const auto& shape) {
        CAPTURE(shape.name);
        for (const int ranks : {4, 8, 11})
            for (const simulated::network& net :
                 {simulated::network{.links = slow_between}, {.links = slow_between, .cards = card}}) {
                CAPTURE(ranks);
                compare(simulate_dense(shape, ranks, 1000, net),
                        cost::predict_all_reduce(shape, ranks, cost::dense_messages<float>(1000), net));
            }
    });
}

TEST_CASE("a receiver's card takes one message after the other") {
    const auto card = [](rank_t rank) {
        return rank == 0 ? network_card::single_receive(10'000'000) : network_card::full_duplex(40'000'000);
    };
    const simulated::network net{.latency = microseconds(3), .bandwidth = 100'000'000, .cards = card};
    cases::for_each_topology([&](const auto& shape) {
        CAPTURE(shape.name);
        for (const int ranks : {2, 6, 9}) {
            CAPTURE(ranks);
            compare(simulate_dense(shape, ranks, 1000, net),
                    cost::predict_all_reduce(shape, ranks, cost::dense_messages<float>(1000), net));
        }
    });
}

TEST_CASE("ranks that enter late hold up those that wait for them") {
    std::vector<duration> starts(9);
    starts[4] = milliseconds(2);
    starts[7] = microseconds(30);
    cases::for_each_topology([&](const auto& shape) {
        CAPTURE(shape.name);
        compare(simulate_dense(shape, 9, 1000, uneven, starts),
                cost::predict_all_reduce(shape, 9, cost::dense_messages<float>(1000), uneven, starts));
    });
}
