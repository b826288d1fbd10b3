#include <rill/system/coded_reduce.hpp>
#include <rill/system/master_worker.hpp>

#include <rill/train/coded_batch.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

using namespace rill;

namespace {

train::dataset some_data(std::size_t rows, std::size_t columns) {
    train::dataset data{rows, columns, 2, {}, {}};
    random_sequence draw(random_key{3});
    for (std::size_t i = 0; i < rows * columns; ++i)
        data.features.push_back(static_cast<float>(draw.below(2001)) / 1000.0F - 1.0F);
    for (std::size_t i = 0; i < rows; ++i)
        data.labels.push_back(data.features[i * columns] + 0.3F * data.features[i * columns + 1] > 0 ? 1 : 0);
    return data;
}

}  // namespace

TEST_CASE("coded_reduce: the tree, a code with its reason, and the loads") {
    const auto plan = systems::coded_reduce<float>({.width = 3, .depth = 2, .stragglers = 1}, 150);
    CHECK(plan.tree == topology::regular_tree{3, 2});
    CHECK(plan.code.workers() == 3);
    CHECK(plan.code.stragglers() == 1);
    CHECK(plan.allocation.points() == 150);
    CHECK(plan.reason.find("load") != std::string::npos);
    for (rank_t rank = 1; rank < plan.tree.size(); ++rank) CHECK(plan.allocation.load_of(rank) == 40);  // 4/15

    const auto one_master = systems::gradient_coding<double>(6, 2, 60);
    CHECK(one_master.tree == topology::regular_tree{6, 1});
    CHECK(one_master.allocation.load_of(1) == 30);
}

TEST_CASE("coded_reduce: descends as one rank with all the data does, whoever sleeps") {
    const auto data = some_data(150, 6);
    const auto plan = systems::coded_reduce<double>({.width = 3, .depth = 2, .stragglers = 1}, data.rows);
    constexpr double rate = 0.5;
    constexpr std::uint64_t steps_to_go = 15;

    std::vector<std::uint32_t> all(data.rows);
    std::iota(all.begin(), all.end(), 0U);
    train::logistic_regression<double> model(data.columns);
    std::vector<double> expected(model.dimension()), gradient(model.dimension());
    for (std::uint64_t t = 0; t < steps_to_go; ++t) {
        model.gradient(expected, {data, all}, gradient);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= rate * gradient[i];
    }

    const simulated::network net{.latency = microseconds(50),
                                 .computing = [](rank_t rank, std::uint64_t step, double work) {
                                     const bool sleeps = rank != 0 && (rank - 1) % 3 == static_cast<int>(step % 3);
                                     return (sleeps ? seconds(1) : milliseconds(1)) * static_cast<std::int64_t>(work);
                                 }};
    std::vector<double> reached;
    simulated::run(plan.tree.size(), net, [&](simulated::endpoint& end) {
        group workers{end, topology::star{}};
        rill::coded_reduce steps{workers, plan.tree, plan.code};
        const train::coded_batch mine(plan.allocation, end.rank());
        train::logistic_regression<double> objective(data.columns);
        std::vector<double> parameters(objective.dimension()), own(objective.dimension()), whole(objective.dimension());
        while (steps.next(parameters)) {
            rill::compute(end, static_cast<double>(mine.load()));
            if (!steps.is_root()) objective.gradient(parameters, mine.of(data), own);
            steps.reduce(own, whole);
            if (!steps.is_root()) continue;
            for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= rate * whole[i];
            if (steps.number() == steps_to_go) steps.end();
        }
        if (end.rank() == 0) reached = parameters;
    });
    REQUIRE(reached.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) worst = std::max(worst, std::abs(reached[i] - expected[i]));
    CHECK(worst < 1e-12);
    CHECK(std::abs(expected[0]) > 0.1);
}

TEST_CASE("master_worker: aliases for their compositions") {
    simulated::run(5, {}, [](simulated::endpoint& end) {
        group workers{end, topology::star{}};
        const std::vector<float> ones(4, 1.0F);
        std::vector<float> model(4), sum(4);
        const auto contributors = [&](auto& steps) {
            int in = 0;
            while (steps.next(model)) {
                const auto r = steps.reduce(ones, sum);
                in = r.contributors;
                if (steps.is_root()) steps.end();
            }
            return in;
        };
        auto all = systems::uncoded_master_worker(workers);
        static_assert(std::is_same_v<decltype(all), rounds<decltype(workers), topology::star, straggler::wait_all>>);
        auto fastest = systems::sgd_ignoring_slowest(workers, 1);
        const int of_all = contributors(all), of_fastest = contributors(fastest);
        if (end.rank() == 0) {
            CHECK(of_all == 5);
            CHECK(of_fastest == 4);
        }
    });
}
