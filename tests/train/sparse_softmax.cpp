#include <rill/train/sparse_softmax.hpp>

#include "samples.hpp"
#include "sparse_samples.hpp"
#include "step_cost.hpp"

#include <rill/testing/sparse_objective_laws.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/softmax_regression.hpp>
#include <rill/train/sparse_bsp.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

/// The label is the third of the columns in which most of a row's entries lie.
sparse_dataset three_classes(std::size_t rows, std::uint64_t seed = 1) {
    sparse_dataset data = random_sparse(rows, 45, 7, true, seed);
    for (std::size_t r = 0; r < rows; ++r) {
        float sums[3] = {};
        const sparse_row row = data.row(r);
        for (std::size_t i = 0; i < row.size(); ++i) sums[row.columns[i] / 15] += row.value(i);
        data.labels[r] = sums[0] >= sums[1] && sums[0] >= sums[2] ? 0.0F : sums[1] >= sums[2] ? 1.0F : 2.0F;
    }
    return data;
}

}  // namespace

TEST_CASE_TEMPLATE("sparse_softmax: keeps the laws of sparse objectives", T, float, double) {
    const sparse_dataset data = three_classes(40);
    const std::vector<std::uint32_t> rows{3, 7, 30, 31, 3, 39}, others = first_rows(12);
    const std::vector<double> weights{0.5, -1, 2, 0.25, 1, 3};
    int laws = 0;
    for (const auto given : {std::span<const double>(), std::span<const double>(weights)}) {
        sparse_softmax<T> model(45, 3);
        testing::for_each_sparse_objective_law(model, {data, rows, given}, {data, others},
                                               [&](const char* name, const testing::law_outcome& outcome) {
                                                   ++laws;
                                                   CHECK_MESSAGE(outcome.held, name << ": " << outcome.what);
                                               });
    }
    CHECK(laws == 2 * 6);
}

TEST_CASE("sparse_softmax: loss and gradient are those of softmax_regression on densified rows") {
    const sparse_dataset data = three_classes(60);
    dataset dense = densified(data);
    dense.classes = 3;
    for (std::size_t r = 0; r < 60; ++r) dense.labels[r] = static_cast<std::int32_t>(data.labels[r]);
    sparse_softmax<double> model(45, 3);
    softmax_regression<double> expected(45, 3);  // the weights of class 0, then those of 1 and 2, then the biases
    std::vector<double> w(model.dimension()), of_classes(w.size()), g(w.size());
    for (std::size_t c = 0; c <= 45; ++c)
        for (std::size_t k = 0; k < 3; ++k)
            of_classes[c < 45 ? k * 45 + c : 135 + k] = w[c * 3 + k] = 0.1 * static_cast<double>((c + 2 * k) % 7) - 0.3;
    const std::vector<std::uint32_t> rows = first_rows(60);
    stream<double> gradient;
    CHECK(model.gradient(w, {data, rows}, gradient) ==
          doctest::Approx(expected.gradient(of_classes, {dense, rows}, g)));
    std::vector<double> made(w.size());
    for (std::size_t e = 0; e < gradient.count(); ++e) made[gradient.indices()[e]] = gradient.values()[e];
    for (std::size_t c = 0; c <= 45; ++c)
        for (std::size_t k = 0; k < 3; ++k) CHECK(made[c * 3 + k] == doctest::Approx(g[c < 45 ? k * 45 + c : 135 + k]));
    CHECK(accuracy(model, w, data) == accuracy(expected, of_classes, dense));
}

TEST_CASE("sparse_softmax: entries are the rows of weights of the batch's columns, and the biases") {
    const sparse_dataset data = three_classes(30);
    const std::vector<std::uint32_t> rows{4, 11, 29};
    std::set<std::uint32_t> expected{135, 136, 137};
    for (const std::uint32_t r : rows)
        for (const std::uint32_t c : data.row(r).columns)
            for (std::uint32_t k = 0; k < 3; ++k) expected.insert(3 * c + k);
    sparse_softmax<float> model(45, 3);
    const std::vector<float> w(model.dimension());
    stream<float> gradient;
    model.gradient(w, {data, rows}, gradient);
    CHECK(std::vector<std::uint32_t>(gradient.indices().begin(), gradient.indices().end()) ==
          std::vector<std::uint32_t>(expected.begin(), expected.end()));
}

TEST_CASE("sparse_softmax: learns, and refuses labels that are no classes") {
    sparse_dataset data = three_classes(600);
    const sparse_dataset unseen = three_classes(300, 2);
    sparse_softmax<float> model(45, 3);
    std::vector<float> w(model.dimension());
    auto optimizer = sgd{}.bind<float>(w.size());
    stream<float> gradient;
    for (int step = 0; step < 300; ++step) {
        model.gradient(w, {data, first_rows(600)}, gradient);
        optimizer.step(w, gradient.view(), 2);
    }
    CHECK(accuracy(model, w, unseen) > 0.85);
    for (const float label : {-1.0F, 3.0F, 0.5F}) {
        data.labels[0] = label;
        CHECK_THROWS_AS(model.loss(w, {data, first_rows(1)}), contract_violation);
    }
    CHECK_THROWS_AS(sparse_softmax<float>(45, 1), contract_violation);
}

TEST_CASE("sparse_softmax: a step touches and allocates as much with many millions of columns as with ten thousand") {
    constexpr std::size_t classes = 4;
    const auto cost_with = [](std::size_t columns) {
        return cost_of_step(sparse_softmax<float>(columns, classes), columns);
    };
    const step_cost few = cost_with(10'000), many = cost_with(250'000'000);
    for (const step_cost& cost : {few, many}) {
        CHECK(cost.entries > 200 * classes);
        CHECK(cost.pages <= 2 * cost.entries / classes);  // a row of weights lies in one page or two
#ifndef RILL_TEST_SANITIZED
        CHECK(cost.later_allocations == 0);
        CHECK(cost.allocated < 40 * 20 * 30 * 2 + 20 * classes * 8 + cost.entries * 16);
#endif
    }
    CHECK(many.pages >= few.pages);
}

TEST_CASE("sparse_softmax: over sparse_bsp with whole_rows the parameters are those of bsp, bit for bit") {
    constexpr int ranks = 3;
    constexpr constant_rate rate{0.5};
    std::vector<std::vector<float>> results(ranks), expected(ranks);
    simulated::run(ranks, {}, [&](auto& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        const sparse_dataset mine = three_classes(40, 5 + rank);
        const minibatches_of<sparse_dataset> batches{mine, {.batch = 5, .key = random_key{rank}}};
        const coding by_rows{.indices = index_coding::whole_rows, .row = 3};
        const auto sparse_with = [&](const coding& codes) {
            return sparse_bsp{topology::split_allgather{}, stream_codings{codes, codes, codes}, sgd{}, rate};
        };
        trainer rows{net, sparse_softmax<float>(45, 3), batches, sparse_with(by_rows)};
        trainer entries{net, sparse_softmax<float>(45, 3), batches, sparse_with({})};
        trainer dense{net, sparse_softmax<float>(45, 3), batches, bsp{topology::split_allgather{}, sgd{}, rate}};
        std::uint64_t bytes = 0, more_bytes = 0;
        for (int step = 0; step < 20; ++step) {
            bytes += rows.step().exchange.wire.bytes_sent;
            more_bytes += entries.step().exchange.wire.bytes_sent;
            dense.step();
        }
        CHECK(bytes < more_bytes);
        results[rank].assign(rows.parameters().begin(), rows.parameters().end());
        expected[rank].assign(dense.parameters().begin(), dense.parameters().end());
    });
    for (const auto& result : results) CHECK(result == expected[0]);
    CHECK(results[0] != std::vector<float>(46 * 3));
}
