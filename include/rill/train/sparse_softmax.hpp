#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/span_of.hpp>
#include <rill/kernel/sort_by_index.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/softmax.hpp>
#include <rill/train/sparse_dataset.hpp>
#include <rill/train/sparse_objective.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Multinomial logistic regression on sparse rows. Labels are the numbers of the classes, from 0.
///
/// Parameters: for each column one weight per class, side by side, then the biases; so the gradient has a run of
/// `classes` entries for each column of the batch, and one for the biases: whole rows for the index coding
/// `whole_rows`. Models `SparseObjective`, and `Objective` with the same bits. Cost of `gradient`: two passes over the
/// entries of the batch for each class, and a radix sort of them. Scratch memory: 24 bytes for each entry, and a value
/// for each row and class.
template <std::floating_point T = float>
class sparse_softmax {
  public:
    using scalar = T;
    using batch = sparse_batch;

    sparse_softmax(std::size_t columns, std::size_t classes)
        : layers_{layer{"weights", {0, columns * classes}},
                  layer{"biases", {columns * classes, (columns + 1) * classes}}},
          classes_(classes) {
        constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
        RILL_EXPECTS(classes > 1 && columns > 0 && columns < most / classes,
                     "sparse_softmax: parameters that 32 bits can number, of at least two classes and a column");
    }

    std::size_t dimension() const { return layers_[1].part.end; }
    std::size_t columns() const { return layers_[0].part.end / classes_; }
    std::size_t classes() const { return classes_; }
    std::span<const layer> layers() const { return layers_; }

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_softmax: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        check(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r)
            sum += samples.template weight<double>(r) *
                   softmax_loss(scores_of(parameters, samples, r), label_of(samples, r));
        return sum;
    }

    /// Returns the loss of the samples, and writes its derivatives by the weights of their columns and by the biases.
    double gradient(std::span<const T> parameters, const batch& samples, stream<T>& output) {
        const double loss = find_slopes(parameters, samples);
        entries_.clear();
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            const sparse_row row = samples.data.row(samples.rows[r]);
            for (std::size_t i = 0; i < row.size(); ++i)
                entries_.push_back({row.columns[i], static_cast<std::uint32_t>(r), row.value(i)});
        }
        const auto sorted = kernel::sort_by_index(span_of(entries_), scratch_);
        std::size_t touched = 1;  // the biases
        for (std::size_t e = 0; e < sorted.size(); ++e)
            touched += e == 0 || sorted[e].index != sorted[e - 1].index ? 1 : 0;
        const auto room = output.make_sparse({0, dimension()}, touched * classes_);
        std::fill(room.values.begin(), room.values.end(), T{0});
        std::size_t at = 0;
        for (std::size_t e = 0; e < sorted.size(); ++e) {
            if (e > 0 && sorted[e].index != sorted[e - 1].index) at += classes_;
            if (e == 0 || sorted[e].index != sorted[e - 1].index)
                number(room.indices.subspan(at, classes_), sorted[e].index);
            add(room.values.subspan(at, classes_), static_cast<T>(sorted[e].value), sorted[e].row);
        }
        number(room.indices.last(classes_), columns());
        for (std::size_t r = 0; r < samples.rows.size(); ++r) add(room.values.last(classes_), T{1}, r);
        return loss;
    }

    /// The same into a value for each parameter.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> output) {
        RILL_EXPECTS(output.size() == dimension(), "sparse_softmax: room for a derivative by every parameter");
        const double loss = find_slopes(parameters, samples);
        std::fill(output.begin(), output.end(), T{0});
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            const sparse_row row = samples.data.row(samples.rows[r]);
            for (std::size_t i = 0; i < row.size(); ++i)
                add(output.subspan(row.columns[i] * classes_, classes_), static_cast<T>(row.value(i)), r);
            add(output.last(classes_), T{1}, r);
        }
        return loss;
    }

    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes) {
        check(parameters, samples);
        RILL_EXPECTS(classes.size() == samples.rows.size(), "sparse_softmax: room for one class per row");
        for (std::size_t r = 0; r < classes.size(); ++r) classes[r] = best_class(scores_of(parameters, samples, r));
    }
    /// The class that a label stands for.
    static std::int32_t class_of(float label) { return static_cast<std::int32_t>(label); }

  private:
    struct entry {
        std::uint32_t index;
        std::uint32_t row;  ///< of the batch
        float value;
    };

    void check(std::span<const T> parameters, const batch& samples) {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_softmax: all parameters");
        RILL_EXPECTS(!samples.rows.empty(), "sparse_softmax: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "sparse_softmax: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns <= columns(), "sparse_softmax: weights for each column");
        slopes_.resize(samples.rows.size() * classes_);
    }

    std::span<T> slopes_of(std::size_t r) { return span_of(slopes_).subspan(r * classes_, classes_); }

    /// The scores of the r-th row of the batch, in its place for slopes.
    std::span<const T> scores_of(std::span<const T> parameters, const batch& samples, std::size_t r) {
        RILL_EXPECTS(samples.rows[r] < samples.data.rows, "sparse_softmax: rows of the dataset");
        const sparse_row row = samples.data.row(samples.rows[r]);
        const std::span<T> scores = slopes_of(r);
        const auto biases = parameters.last(classes_);
        std::copy(biases.begin(), biases.end(), scores.begin());
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto weights = parameters.subspan(row.columns[i] * classes_, classes_);
            for (std::size_t k = 0; k < classes_; ++k) scores[k] += static_cast<T>(row.value(i)) * weights[k];
        }
        return scores;
    }

    std::size_t label_of(const batch& samples, std::size_t r) const {
        const float label = samples.data.labels[samples.rows[r]];
        RILL_EXPECTS(label >= 0 && label < static_cast<float>(classes_) && label == static_cast<float>(class_of(label)),
                     "sparse_softmax: labels are whole numbers from 0, below the number of classes");
        return static_cast<std::size_t>(label);
    }

    double find_slopes(std::span<const T> parameters, const batch& samples) {
        check(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            scores_of(parameters, samples, r);
            sum += samples.template weight<double>(r) *
                   softmax_gradient(slopes_of(r), label_of(samples, r), samples.template weight<T>(r));
        }
        return sum;
    }

    /// Adds `value` times the slopes of the r-th row.
    void add(std::span<T> to, T value, std::size_t r) {
        const std::span<const T> slopes = slopes_of(r);
        for (std::size_t k = 0; k < classes_; ++k) to[k] += value * slopes[k];
    }
    void number(std::span<std::uint32_t> indices, std::size_t column) const {
        for (std::size_t k = 0; k < classes_; ++k) indices[k] = static_cast<std::uint32_t>(column * classes_ + k);
    }

    std::array<layer, 2> layers_;
    std::size_t classes_;
    aligned_vector<T> slopes_;
    aligned_vector<entry> entries_, scratch_;
};

static_assert(SparseObjective<sparse_softmax<float>> && Classifier<sparse_softmax<double>>);

}}}  // namespace rill::RILL_ABI::train
