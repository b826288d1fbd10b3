#pragma once

#include "images.hpp"

#include <rill/core/random.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/train/perceptron.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

namespace coded_bench {

/// What a figure of the paper minimises, and what it shows.
struct problem {
    std::size_t points = 0;
    std::size_t dimension = 0;
    /// Writes the derivative of the sum of the losses of points [first, last), and returns the sum.
    std::function<double(std::span<const double> model, std::size_t first, std::size_t last, std::span<double> to)>
        gradient;
    std::function<void(std::span<double> model)> initialise = [](std::span<double> model) {
        std::fill(model.begin(), model.end(), 0.0);
    };
    /// What the figure shows of step `number`, from `before` to `after`; NaN where it shows nothing.
    std::function<double(std::span<const double> before, std::span<const double> after, std::size_t number)> shown;
    const char* shown_name = "";
    /// The share of test rows that a model puts into their class; empty where there are no classes.
    std::function<double(std::span<const double> model)> accuracy{};
    /// The rates of the first step among which tuning chooses; if empty, the paper's rate is taken.
    std::vector<double> first_rates{};

    double loss(std::span<const double> model) const {
        std::vector<double> unused(dimension);
        return gradient(model, 0, points, unused) / static_cast<double>(points);
    }
};

inline double square_of(std::span<const double> a) { return std::inner_product(a.begin(), a.end(), a.begin(), 0.0); }

/// |a - b|^2.
inline double square_apart(std::span<const double> a, std::span<const double> b) {
    double apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) apart += (a[i] - b[i]) * (a[i] - b[i]);
    return apart;
}

/// Sums over rows of a dataset with one of the models of `rill::train`.
template <class Model>
auto sum_over_rows(const rill::train::dataset& data, Model model) {
    using T = typename Model::scalar;
    std::vector<std::uint32_t> rows(data.rows);
    std::iota(rows.begin(), rows.end(), 0U);
    return [&data, model = std::move(model), rows = std::move(rows), ones = std::vector<double>(data.rows, 1.0),
            at = std::vector<T>(), slopes = std::vector<T>()](std::span<const double> parameters, std::size_t first,
                                                              std::size_t last, std::span<double> to) mutable {
        at.assign(parameters.begin(), parameters.end());
        slopes.resize(to.size());
        const rill::train::batch batch{data, std::span(rows).subspan(first, last - first),
                                       std::span(ones).subspan(first, last - first)};
        const double loss = model.gradient(std::span<const T>(at), batch, std::span<T>(slopes));
        std::copy(slopes.begin(), slopes.end(), to.begin());
        return loss;
    };
}

/// Logistic regression, and the relative error (9), |w(t) - w(t-1)|^2 / |w(t-1)|^2. `data` must outlive the result.
inline problem logistic_problem(const rill::train::dataset& data) {
    rill::train::logistic_regression<double> model(data.columns);
    const std::size_t dimension = model.dimension();
    return {
        .points = data.rows,
        .dimension = dimension,
        .gradient = sum_over_rows(data, std::move(model)),
        .shown = [](auto before, auto after, std::size_t) { return square_apart(before, after) / square_of(before); },
        .shown_name = "relative_error",
        .first_rates = {0.01, 0.02, 0.04, 0.08}};
}

/// Figures 8 and 9, on GISETTE's stand-in. `data` must outlive the result.
inline problem logistic_problem(const sample& data) {
    problem made = logistic_problem(data.training);
    made.accuracy = [&data](std::span<const double> found) {
        rill::train::logistic_regression<double> predicting(data.training.columns);
        return rill::train::accuracy(predicting, found, data.test);
    };
    return made;
}

/// Figures 10 to 12: linear regression on (10), where features, the true model and the noise are standard Gaussian, and
/// the normalised error (11), |w(t) - truth|^2 / |truth|^2.
inline problem linear_problem(std::size_t points, std::size_t dimension) {
    using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    struct sample_of_model {
        matrix features;
        Eigen::VectorXd truth, targets;
    };
    const auto rows = static_cast<Eigen::Index>(points), columns = static_cast<Eigen::Index>(dimension);
    const auto data = std::make_shared<sample_of_model>();
    rill::random_sequence random(rill::random_key{2022});
    const auto gaussian = [&] {
        const double radius = std::sqrt(-2 * std::log(1.0 - static_cast<double>(random.uniform())));
        return radius * std::cos(2 * std::numbers::pi * static_cast<double>(random.uniform()));
    };
    data->features = matrix::NullaryExpr(rows, columns, gaussian);
    data->truth = Eigen::VectorXd::NullaryExpr(columns, gaussian);
    data->targets = data->features * data->truth + Eigen::VectorXd::NullaryExpr(rows, gaussian);
    const auto as_vector = [](std::span<const double> values) {
        return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
    };
    return {.points = points,
            .dimension = dimension,
            .gradient =
                [=](std::span<const double> model, std::size_t first, std::size_t last, std::span<double> to) {
                    const auto from = static_cast<Eigen::Index>(first), count = static_cast<Eigen::Index>(last - first);
                    const auto some = data->features.middleRows(from, count);
                    const Eigen::VectorXd wrong = some * as_vector(model) - data->targets.segment(from, count);
                    Eigen::Map<Eigen::VectorXd>(to.data(), columns) = some.transpose() * wrong;
                    return wrong.squaredNorm() / 2;
                },
            .shown =
                [=](auto, auto after, std::size_t) {
                    return (as_vector(after) - data->truth).squaredNorm() / data->truth.squaredNorm();
                },
            .shown_name = "normalised_error",
            .first_rates = {0.1, 0.2, 0.3, 0.4, 0.5}};
}

/// Figure 13: a neural network of 119,260 parameters on Fashion-MNIST, and the share of the test images that it puts
/// into their class, every 25 steps. (The paper's: 120,000 parameters, convolutions, CIFAR-10.)
inline problem network_problem(const std::string& folder, std::size_t points) {
    struct all_images {
        rill::train::dataset training, test;
    };
    const auto read = [&](const std::string& part) {
        return rill::train::read_idx_dataset(folder + "/" + part + "-images-idx3-ubyte.gz",
                                             folder + "/" + part + "-labels-idx1-ubyte.gz", 10);
    };
    const auto data = std::make_shared<all_images>(all_images{rows_of(read("train"), 0, points), read("t10k")});
    using model = rill::train::perceptron<float>;
    const auto network = std::make_shared<model>(std::vector<std::size_t>{data->training.columns, 150, 10});
    const auto accuracy = [data, network](std::span<const double> found) {
        const std::vector<float> parameters(found.begin(), found.end());
        return rill::train::accuracy(*network, std::span<const float>(parameters), data->test);
    };
    return {.points = points,
            .dimension = network->dimension(),
            .gradient = [data, sum = sum_over_rows(data->training, model(*network))](
                            auto... arguments) mutable { return sum(arguments...); },
            .initialise =
                [network](std::span<double> parameters) {
                    std::vector<float> initial(parameters.size());
                    network->initialise(initial, {2022});
                    std::copy(initial.begin(), initial.end(), parameters.begin());
                },
            .shown =
                [accuracy](auto, auto after, std::size_t number) {
                    return number % 25 == 0 ? accuracy(after) : std::numeric_limits<double>::quiet_NaN();
                },
            .shown_name = "shown_accuracy",
            .accuracy = accuracy};
}

}  // namespace coded_bench
