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
#include <string_view>
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

/// The paper's artificial data, (10): y = x · truth + z, where all that is random is standard normal.
struct regression_data {
    std::size_t rows = 0, columns = 0;
    std::vector<double> features{}, targets{}, truth{}, noise{};

    regression_data(std::size_t points, std::size_t entries) : rows(points), columns(entries) {
        random_sequence draw(random_key{7});
        const auto normal = [&] {
            const double u = 1 - static_cast<double>(draw.uniform()), v = static_cast<double>(draw.uniform());
            return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
        };
        for (std::size_t i = 0; i < columns; ++i) truth.push_back(normal());
        for (std::size_t j = 0; j < rows; ++j) {
            for (std::size_t i = 0; i < columns; ++i) features.push_back(normal());
            noise.push_back(normal());
            targets.push_back(std::inner_product(truth.begin(), truth.end(), row(j), noise.back()));
        }
    }
    const double* row(std::size_t j) const { return features.data() + j * columns; }
};

/// Least squares on shares of points, from zero.
class least_squares {
  public:
    using scalar = double;
    using batch = std::span<const data_share>;

    explicit least_squares(const regression_data& data) : data_(&data), all_{"all", {0, data.columns}} {}

    std::size_t dimension() const { return data_->columns; }
    std::span<const layer> layers() const { return {&all_, 1}; }
    void initialise(std::span<double> model, random_key) const { std::fill(model.begin(), model.end(), 0.0); }
    double loss(std::span<const double>, const batch&) { return 0; }
    double gradient(std::span<const double> model, const batch& shares, std::span<double> output) {
        std::fill(output.begin(), output.end(), 0.0);
        for (const data_share& share : shares)
            for (std::size_t j = share.first; j < share.last; ++j) {
                const double* x = data_->row(j);
                const double wrong = std::inner_product(model.begin(), model.end(), x, -data_->targets[j]);
                for (std::size_t i = 0; i < output.size(); ++i)
                    output[i] += share.coefficient * wrong * x[i] / static_cast<double>(data_->rows);
            }
        return 0;
    }

  private:
    const regression_data* data_;
    layer all_;
};

struct fixed_shares {
    std::vector<data_share> shares;

    std::span<const data_share> next() const { return shares; }
    void save(auto&, std::string_view) const {}
    void restore(const auto&, std::string_view) {}
};

double length(std::span<const double> v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }

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

TEST_CASE("coded_reduce: Table I of the paper: α of the children may be missing at a load of r, where α ≈ r^(1/L)") {
    struct tree {
        int width, depth, stragglers;
    };
    for (const tree of : {tree{4, 1, 1}, tree{6, 1, 2}, tree{4, 2, 1}, tree{6, 2, 2}, tree{4, 3, 1}}) {
        const auto plan = systems::coded_reduce<double>(
            {.width = of.width, .depth = of.depth, .stragglers = of.stragglers}, train::sgd{}, train::constant_rate{1});
        CHECK(plan.code.stragglers() == of.stragglers);
        const double each = static_cast<double>(of.width) / (of.stragglers + 1);
        double sum = 0;  // of (n / (s + 1))^l, the inverse of the load in (5)
        for (int level = 1; level <= of.depth; ++level) sum += std::pow(each, level);
        constexpr std::size_t points = 16'800;
        const coded_allocation allocation(plan.topology, plan.code, points);
        for (rank_t rank = 1; rank < plan.topology.size(); ++rank)
            CHECK(static_cast<double>(allocation.load_of(rank)) == doctest::Approx(points / sum).epsilon(0.001));
        // α + 1/n bounds r^(1/L) from above, and equals it where there is one level.
        const double root = std::pow(1 / sum, 1.0 / of.depth);
        CHECK(root <= 1 / each + 1e-12);
        if (of.depth == 1) CHECK(root == doctest::Approx(1 / each));
        CHECK(root > 0.7 / each);
    }
}

TEST_CASE("coded_reduce: the normalised error of linear regression, (11), falls as that of gradient descent must") {
    const regression_data data(600, 4);
    constexpr double rate = 0.4;
    constexpr int steps = 20;
    const double whole = length(data.truth);

    // The error e of a step becomes (I - rate A) e + rate b, with A = X'X / d and b = X'z / d. Gershgorin's discs bound
    // A's eigenvalues.
    double least = 1e9, most = 0;
    std::vector<double> b(data.columns);
    for (std::size_t i = 0; i < data.columns; ++i) {
        double diagonal = 0, beside = 0;
        for (std::size_t k = 0; k < data.columns; ++k) {
            double sum = 0;
            for (std::size_t j = 0; j < data.rows; ++j) sum += data.row(j)[i] * data.row(j)[k];
            (k == i ? diagonal : beside) += std::abs(sum) / static_cast<double>(data.rows);
        }
        least = std::min(least, diagonal - beside);
        most = std::max(most, diagonal + beside);
        for (std::size_t j = 0; j < data.rows; ++j)
            b[i] += data.row(j)[i] * data.noise[j] / static_cast<double>(data.rows);
    }
    REQUIRE(least > 0.5);
    REQUIRE(rate * most < 1);

    const auto plan = systems::coded_reduce<double>({.width = 3, .depth = 2, .stragglers = 1}, train::sgd{},
                                                    train::constant_rate{rate});
    const coded_allocation allocation(plan.topology, plan.code, data.rows);
    std::vector<double> errors;
    simulated::run(plan.topology.size(), {.latency = microseconds(50)}, [&](simulated::endpoint& end) {
        fixed_shares own;
        if (end.rank() != 0) {
            const auto& shares = allocation.shares_of(end.rank());
            own.shares.assign(shares.begin(), shares.end());
        }
        train::trainer trainer{end, least_squares(data), own, plan};
        while (trainer.step()) {
            if (end.rank() == 0) {
                std::vector<double> apart(data.columns);
                for (std::size_t i = 0; i < apart.size(); ++i) apart[i] = trainer.parameters()[i] - data.truth[i];
                errors.push_back(std::pow(length(apart) / whole, 2));
            }
            if (trainer.step_number() == steps) trainer.end();
        }
    });
    REQUIRE(errors.size() >= steps);
    for (int t = 1; t <= steps; ++t) {
        const double bound = std::pow(1 - rate * least, t) + length(b) / (least * whole);
        CHECK(errors[static_cast<std::size_t>(t - 1)] <= bound * bound);
    }
    CHECK(errors.back() < 0.02);
}
