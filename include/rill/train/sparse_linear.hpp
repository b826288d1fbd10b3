#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/span_of.hpp>
#include <rill/kernel/sum_by_index.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/lazy_l2.hpp>
#include <rill/train/linear_loss.hpp>
#include <rill/train/sparse_dataset.hpp>
#include <rill/train/sparse_objective.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A linear model on sparse rows: a weight for each column and a bias, the last parameter. With `logistic` it is
/// logistic regression of two classes, with `hinge` a support vector machine, with `squared` linear regression.
///
/// Its gradient has entries for the bias and the columns of those rows whose loss has a slope that is not 0; with an L2
/// penalty, of all rows of the batch. Models `SparseObjective`, and `Objective` with the same bits.
/// Cost of `gradient`: one pass over the entries of the batch, and a radix sort of them. Scratch memory: 16 bytes for
/// each (24 of double).
template <LinearLoss Loss = logistic, std::floating_point T = float>
class sparse_linear {
  public:
    using scalar = T;
    using batch = sparse_batch;

    explicit sparse_linear(std::size_t columns, lazy_l2 penalty = {})
        : layers_{layer{"weights", {0, columns}}, layer{"bias", {columns, columns + 1}}}, penalty_(std::move(penalty)) {
        RILL_EXPECTS(columns > 0 && columns <= std::numeric_limits<std::uint32_t>::max(),
                     "sparse_linear: columns that 32 bits can number");
        RILL_EXPECTS(penalty_.is_none() || penalty_.columns() == columns, "sparse_linear: a penalty of all columns");
    }

    std::size_t dimension() const { return columns() + 1; }
    std::size_t columns() const { return layers_[0].part.end; }
    std::span<const layer> layers() const { return layers_; }

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_linear: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        return visit(parameters, samples, [](std::uint32_t, T) {}).loss;
    }

    /// Returns the loss of the samples, and writes its derivatives that are not always 0.
    double gradient(std::span<const T> parameters, const batch& samples, stream<T>& output) {
        entries_.clear();
        const totals sum = visit(parameters, samples, [&](std::uint32_t c, T slope) {
            entries_.push_back({c, slope});
        });
        const auto room = output.make_sparse({0, dimension()}, entries_.size() + 1);
        const std::size_t count = kernel::sum_by_index(span_of(entries_), scratch_, room.indices, room.values);
        room.indices[count] = static_cast<std::uint32_t>(columns());
        room.values[count] = sum.bias;
        output.shrink(count + 1);
        return sum.loss;
    }

    /// The same into a value for each parameter.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> output) {
        RILL_EXPECTS(output.size() == dimension(), "sparse_linear: room for a derivative by every parameter");
        std::fill(output.begin(), output.end(), T{0});
        const totals sum = visit(parameters, samples, [&](std::uint32_t c, T slope) { output[c] += slope; });
        output.back() = sum.bias;
        return sum.loss;
    }

    /// 1 where the score is above 0, else 0.
    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes)
        requires(Loss::is_classifier)
    {
        check(parameters, samples);
        RILL_EXPECTS(classes.size() == samples.rows.size(), "sparse_linear: room for one class per row");
        for (std::size_t r = 0; r < classes.size(); ++r)
            classes[r] = score(parameters, samples.data.row(samples.rows[r])) > 0 ? 1 : 0;
    }
    /// The class that a label stands for.
    static std::int32_t class_of(float label)
        requires(Loss::is_classifier)
    {
        return label > 0 ? 1 : 0;
    }

  private:
    struct totals {
        double loss = 0;
        T bias{};
    };

    void check(std::span<const T> parameters, const batch& samples) const {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_linear: all parameters");
        RILL_EXPECTS(!samples.rows.empty(), "sparse_linear: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "sparse_linear: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns <= columns(), "sparse_linear: a weight for each column");
    }

    T score(std::span<const T> parameters, const sparse_row& row) const {
        T sum = parameters.back();
        if (row.values.empty())
            for (const std::uint32_t column : row.columns) sum += parameters[column];
        else
            for (std::size_t i = 0; i < row.size(); ++i)
                sum += static_cast<T>(row.values[i]) * parameters[row.columns[i]];
        return sum;
    }

    /// Adds up the losses; calls `take(column, slope)` for each entry whose row has a slope.
    template <class Take>
    totals visit(std::span<const T> parameters, const batch& samples, Take&& take) const {
        check(parameters, samples);
        totals sum;
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            RILL_EXPECTS(samples.rows[r] < samples.data.rows, "sparse_linear: rows of the dataset");
            const sparse_row row = samples.data.row(samples.rows[r]);
            const float label = samples.data.labels[samples.rows[r]];
            const T weight = samples.template weight<T>(r), at = score(parameters, row);
            const T slope = weight * Loss::slope(at, label);
            sum.loss += samples.template weight<double>(r) * (Loss::value(at, label) + penalty(parameters, row));
            sum.bias += slope;
            if (penalty_.is_none() && slope == T{0}) continue;
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::uint32_t c = row.columns[i];
                T each = row.values.empty() ? slope : slope * static_cast<T>(row.values[i]);
                if (!penalty_.is_none()) each += weight * static_cast<T>(penalty_.factor(c)) * parameters[c];
                take(c, each);
            }
        }
        return sum;
    }

    double penalty(std::span<const T> parameters, const sparse_row& row) const {
        double sum = 0;
        if (!penalty_.is_none())
            for (const std::uint32_t c : row.columns)
                sum += 0.5 * static_cast<double>(penalty_.factor(c)) * static_cast<double>(parameters[c]) *
                       static_cast<double>(parameters[c]);
        return sum;
    }

    std::array<layer, 2> layers_;
    lazy_l2 penalty_;
    aligned_vector<kernel::index_value<T, std::uint32_t>> entries_, scratch_;
};

static_assert(SparseObjective<sparse_linear<logistic>> && Classifier<sparse_linear<logistic>>);
static_assert(SparseObjective<sparse_linear<squared, double>> && Objective<sparse_linear<squared, double>>);

}}}  // namespace rill::RILL_ABI::train
