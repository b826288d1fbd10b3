#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/dense_product.hpp>
#include <rill/train/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A fully connected network with ReLU between its layers, trained by softmax cross-entropy.
///
/// Parameters: for each layer its weights, row-major, one row per output; then its biases. Scratch memory: two floats
/// per unit and row of the largest batch so far.
template <std::floating_point T = float>
class perceptron {
  public:
    using scalar = T;
    using batch = train::batch;

    /// `widths`: columns of the data, hidden units of each layer, classes.
    explicit perceptron(std::vector<std::size_t> widths = {784, 512, 10}) : widths_(std::move(widths)) {
        RILL_EXPECTS(widths_.size() >= 2, "perceptron: at least the widths of input and output");
        RILL_EXPECTS(std::find(widths_.begin(), widths_.end(), 0U) == widths_.end(), "perceptron: no empty layer");
        for (std::size_t l = 0; l < depth(); ++l) {
            append("layer " + std::to_string(l + 1) + " weights", widths_[l] * widths_[l + 1]);
            append("layer " + std::to_string(l + 1) + " biases", widths_[l + 1]);
        }
        activations_.resize(widths_.size());
    }

    std::span<const std::size_t> widths() const { return widths_; }
    std::size_t dimension() const { return layers_.back().part.end; }
    std::span<const layer> layers() const { return layers_; }

    /// He's uniform distribution, `±√(6 / inputs)`, and zero biases; the same bits on every machine.
    void initialise(std::span<T> parameters, random_key key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "perceptron: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
        for (std::size_t l = 0; l < depth(); ++l) {
            const counter_rng random(key.derive(l));
            const T bound = static_cast<T>(std::sqrt(6.0 / static_cast<double>(widths_[l])));
            const segment part = weights(l);
            for (std::size_t i = 0; i < part.size(); ++i)
                parameters[part.begin + i] = (2 * static_cast<T>(random.uniform(i)) - 1) * bound;
        }
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        forward(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r)
            sum += multiplicity(samples, r) * softmax_loss(std::span<const T>(scores(r)), label(samples, r));
        return sum / divisor(samples);
    }

    /// Returns the loss of the samples, and writes its derivative by each parameter to `gradient`.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> gradient) {
        return this->gradient(parameters, samples, gradient, [](std::size_t) {});
    }

    /// Returns the loss and writes the gradient. Calls `ready(i)` for each of `layers()` as soon as its part of
    /// `gradient` is final, the last layer first.
    template <class Ready>
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> gradient, Ready&& ready) {
        RILL_EXPECTS(gradient.size() == dimension(), "perceptron: room for a derivative by every parameter");
        const std::size_t rows = samples.rows.size();
        forward(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < rows; ++r)
            sum += multiplicity(samples, r) *
                   softmax_gradient(scores(r), label(samples, r), samples.template weight<T>(r));
        for (std::size_t l = depth(); l-- > 0;) {
            differentiate(l, rows, gradient);
            ready(2 * l + 1);
            ready(2 * l);
            if (l > 0) propagate(l, rows, parameters);
        }
        return sum / divisor(samples);
    }

    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes) {
        RILL_EXPECTS(classes.size() == samples.rows.size(), "perceptron: room for one class per row");
        forward(parameters, samples);
        for (std::size_t r = 0; r < classes.size(); ++r) classes[r] = best_class(std::span<const T>(scores(r)));
    }

  private:
    std::size_t depth() const { return widths_.size() - 1; }
    segment weights(std::size_t l) const { return layers_[2 * l].part; }
    segment biases(std::size_t l) const { return layers_[2 * l + 1].part; }
    matrix_view<T> activations(std::size_t l, std::size_t rows) { return {activations_[l].data(), rows, widths_[l]}; }
    matrix_view<const T> inputs(std::size_t l, std::size_t rows) { return {activations_[l].data(), rows, widths_[l]}; }
    matrix_view<const T> weight_matrix(std::size_t l, std::span<const T> parameters) const {
        return {parameters.data() + weights(l).begin, widths_[l + 1], widths_[l]};
    }
    std::span<T> scores(std::size_t row) {
        return std::span(activations_.back()).subspan(row * widths_.back(), widths_.back());
    }

    void append(std::string name, std::size_t size) {
        const std::size_t begin = layers_.empty() ? 0 : layers_.back().part.end;
        layers_.push_back({std::move(name), {begin, begin + size}});
    }

    std::size_t label(const batch& samples, std::size_t r) const {
        const auto found = static_cast<std::size_t>(samples.data.labels[samples.rows[r]]);
        RILL_EXPECTS(found < widths_.back(), "perceptron: a label for which there is an output");
        return found;
    }

    // For a mean, divides the sum once instead of each term.
    static double multiplicity(const batch& samples, std::size_t r) {
        return samples.weights.empty() ? 1.0 : static_cast<double>(samples.weights[r]);
    }
    static double divisor(const batch& samples) {
        return samples.weights.empty() ? static_cast<double>(samples.rows.size()) : 1.0;
    }

    void forward(std::span<const T> parameters, const batch& samples) {
        RILL_EXPECTS(parameters.size() == dimension(), "perceptron: all parameters");
        const std::size_t rows = samples.rows.size();
        gather(samples);
        for (std::size_t l = 0; l < depth(); ++l) {
            multiply(inputs(l, rows), weight_matrix(l, parameters).transposed(), activations(l + 1, rows));
            add_biases(parameters.subspan(biases(l).begin, biases(l).size()), activations(l + 1, rows),
                       l + 1 < depth());
        }
    }

    void gather(const batch& samples) {
        RILL_EXPECTS(!samples.rows.empty(), "perceptron: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "perceptron: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns == widths_.front(), "perceptron: as many columns as inputs");
        reserve(samples.rows.size());
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            RILL_EXPECTS(samples.rows[r] < samples.data.rows, "perceptron: rows of the dataset");
            const std::span<const float> row = samples.data.row(samples.rows[r]);
            std::copy(row.begin(), row.end(), activations_.front().data() + r * widths_.front());
        }
    }

    void reserve(std::size_t rows) {
        if (rows <= most_rows_) return;
        for (std::size_t l = 0; l < widths_.size(); ++l) activations_[l].resize(rows * widths_[l]);
        slopes_.resize(rows * *std::max_element(widths_.begin(), widths_.end()));
        most_rows_ = rows;
    }

    static void add_biases(std::span<const T> biases, matrix_view<T> values, bool rectify) {
        for (std::size_t r = 0; r < values.rows; ++r) {
            T* row = values.data + r * values.columns;
            for (std::size_t c = 0; c < values.columns; ++c) {
                const T value = row[c] + biases[c];
                row[c] = rectify && value < 0 ? T{0} : value;  // a NaN stays, so that the loss is NaN
            }
        }
    }

    // The activations of the layers above l have been replaced by the derivatives of the loss.
    void differentiate(std::size_t l, std::size_t rows, std::span<T> gradient) {
        const matrix_view<const T> above = inputs(l + 1, rows);
        multiply(above.transposed(), inputs(l, rows),
                 matrix_view<T>{gradient.data() + weights(l).begin, widths_[l + 1], widths_[l]});
        sum_rows(above, gradient.subspan(biases(l).begin, biases(l).size()));
    }

    // Replaces the inputs of the layer by the derivatives of the loss by them.
    void propagate(std::size_t l, std::size_t rows, std::span<const T> parameters) {
        const matrix_view<const T> above = inputs(l + 1, rows);
        multiply(above, weight_matrix(l, parameters), matrix_view<T>{slopes_.data(), rows, widths_[l]});
        T* below = activations_[l].data();
        for (std::size_t i = 0; i < rows * widths_[l]; ++i) below[i] = below[i] > 0 ? slopes_[i] : T{0};
    }

    static void sum_rows(matrix_view<const T> values, std::span<T> sums) {
        std::copy_n(values.data, values.columns, sums.begin());
        for (std::size_t r = 1; r < values.rows; ++r)
            for (std::size_t c = 0; c < values.columns; ++c) sums[c] += values.data[r * values.columns + c];
    }

    std::vector<std::size_t> widths_;
    std::vector<layer> layers_;
    std::vector<aligned_vector<T>> activations_;  // of each layer, rows × width; in `gradient`, derivatives
    aligned_vector<T> slopes_;
    std::size_t most_rows_ = 0;
};

static_assert(Classifier<perceptron<float>>);
static_assert(Classifier<perceptron<double>>);
static_assert(LayeredObjective<perceptron<float>>);

}}}  // namespace rill::RILL_ABI::train
