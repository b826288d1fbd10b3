#include <rill/system/coded_reduce.hpp>

#include <rill/protocol/coded_allocation.hpp>
#include <rill/train/coded_batch.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
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

/// A logistic regression that begins at zero and computes as long as the network says.
class sleeping_regression : public train::logistic_regression<double> {
  public:
    sleeping_regression(simulated::endpoint& net, std::size_t columns, std::size_t load)
        : logistic_regression(columns), net_(&net), load_(load) {}

    void initialise(std::span<double> parameters, random_key) const {
        std::fill(parameters.begin(), parameters.end(), 0.0);
    }
    double gradient(std::span<const double> parameters, const train::batch& samples, std::span<double> output) {
        net_->compute(static_cast<double>(load_));
        return logistic_regression::gradient(parameters, samples, output);
    }

  private:
    simulated::endpoint* net_;
    std::size_t load_;
};

}  // namespace

TEST_CASE("coded_reduce: a strategy on the tree, with the loads of its code") {
    const train::constant_rate rate{0.5};
    const auto plan = systems::coded_reduce<float>({.width = 3, .depth = 2, .stragglers = 1}, train::sgd{}, rate);
    static_assert(train::Strategy<std::remove_cv_t<decltype(plan)>, simulated::endpoint>);
    CHECK(plan.topology == topology::regular_tree{3, 2});
    CHECK(plan.code.workers() == 3);
    CHECK(plan.code.stragglers() == 1);
    CHECK(plan.rate == rate);
    const coded_allocation allocation(plan.topology, plan.code, 150);
    for (rank_t rank = 1; rank < plan.topology.size(); ++rank) CHECK(allocation.load_of(rank) == 40);  // 4/15

    const auto one_master = systems::gradient_coding<double>(6, 2, train::sgd{}, rate);
    CHECK(one_master.topology == topology::regular_tree{6, 1});
    CHECK(coded_allocation(one_master.topology, one_master.code, 60).load_of(1) == 30);
}

TEST_CASE("coded_reduce: descends as one rank with all the data does, whoever sleeps") {
    const auto data = some_data(150, 6);
    constexpr double rate = 0.5;
    const auto plan = systems::coded_reduce<double>({.width = 3, .depth = 2, .stragglers = 1}, train::sgd{},
                                                    train::constant_rate{rate});
    const coded_allocation allocation(plan.topology, plan.code, data.rows);
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
    simulated::run(plan.topology.size(), net, [&](simulated::endpoint& end) {
        train::trainer trainer{end, sleeping_regression(end, data.columns, allocation.load_of(end.rank())),
                               train::coded_batch(data, allocation, end.rank()), plan};
        while (const train::step_record record = trainer.step()) {
            CHECK(!record.skipped());
            if (trainer.step_number() == steps_to_go) trainer.end();
        }
        CHECK(trainer.strategy().contributes() == (end.rank() != 0));
        if (end.rank() == 0) reached.assign(trainer.parameters().begin(), trainer.parameters().end());
    });
    REQUIRE(reached.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) worst = std::max(worst, std::abs(reached[i] - expected[i]));
    CHECK(worst < 1e-12);
    CHECK(std::abs(expected[0]) > 0.1);
}
