#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/train/dataset.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <Eigen/Core>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Logistic regression of two classes: a weight for each column and a bias, half the parameters of a
/// `softmax_regression` of two classes, and the same loss. Labels are 0 and 1; a score above 0 means class 1.
///
/// Cost: `gradient` reads each row of the batch from memory once. Scratch memory: none.
template <std::floating_point T = float>
class logistic_regression {
  public:
    using scalar = T;
    using batch = train::batch;

    explicit logistic_regression(std::size_t columns)
        : layers_{layer{"weights", {0, columns}}, layer{"bias", {columns, columns + 1}}} {
        RILL_EXPECTS(columns > 0, "logistic_regression: at least one column");
    }

    std::size_t dimension() const { return columns() + 1; }
    std::span<const layer> layers() const { return layers_; }

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "logistic_regression: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        check(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r)
            sum += samples.template weight<double>(r) * loss_of(margin(parameters, samples, r));
        return sum;
    }

    /// Returns the loss of the samples, and writes its derivative by each parameter to `gradient`.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> gradient) {
        check(parameters, samples);
        RILL_EXPECTS(gradient.size() == dimension(), "logistic_regression: room for a derivative by every parameter");
        std::fill(gradient.begin(), gradient.end(), T{0});
        Eigen::Map<vector> slopes(gradient.data(), static_cast<Eigen::Index>(columns()));
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            const T m = margin(parameters, samples, r);
            sum += samples.template weight<double>(r) * loss_of(m);
            const T slope = samples.template weight<T>(r) * -sign(samples, r) / (T{1} + std::exp(m));
            slopes += slope * features(samples, r).template cast<T>();
            gradient.back() += slope;
        }
        return sum;
    }

    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes) {
        check(parameters, samples);
        RILL_EXPECTS(classes.size() == samples.rows.size(), "logistic_regression: room for one class per row");
        for (std::size_t r = 0; r < classes.size(); ++r) classes[r] = score(parameters, samples, r) > 0 ? 1 : 0;
    }

  private:
    using vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    using row = Eigen::Map<const Eigen::VectorXf>;

    std::size_t columns() const { return layers_[0].part.end; }

    void check(std::span<const T> parameters, const batch& samples) const {
        RILL_EXPECTS(parameters.size() == dimension(), "logistic_regression: all parameters");
        RILL_EXPECTS(!samples.rows.empty(), "logistic_regression: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "logistic_regression: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns == columns(), "logistic_regression: as many columns as weights");
    }

    row features(const batch& samples, std::size_t r) const {
        RILL_EXPECTS(samples.rows[r] < samples.data.rows, "logistic_regression: rows of the dataset");
        return {samples.data.row(samples.rows[r]).data(), static_cast<Eigen::Index>(columns())};
    }

    T score(std::span<const T> parameters, const batch& samples, std::size_t r) const {
        const Eigen::Map<const vector> weights(parameters.data(), static_cast<Eigen::Index>(columns()));
        return weights.dot(features(samples, r).template cast<T>()) + parameters.back();
    }

    static T sign(const batch& samples, std::size_t r) {
        const std::int32_t label = samples.data.labels[samples.rows[r]];
        RILL_EXPECTS(label == 0 || label == 1, "logistic_regression: labels are 0 and 1");
        return label == 1 ? T{1} : T{-1};
    }

    T margin(std::span<const T> parameters, const batch& samples, std::size_t r) const {
        return sign(samples, r) * score(parameters, samples, r);
    }

    /// log(1 + exp(-margin)), without overflow of the exponential. A NaN gives NaN.
    static double loss_of(T margin) {
        const double m = static_cast<double>(margin);
        return (m < 0 ? -m : 0.0) + std::log1p(std::exp(-std::abs(m)));
    }

    std::array<layer, 2> layers_;
};

static_assert(Classifier<logistic_regression<float>>);
static_assert(Classifier<logistic_regression<double>>);

}}}  // namespace rill::RILL_ABI::train
