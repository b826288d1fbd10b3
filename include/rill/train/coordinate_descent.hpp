#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/detail/same_place.hpp>
#include <rill/train/detail/without_number.hpp>
#include <rill/train/linear_loss.hpp>
#include <rill/train/sampler.hpp>
#include <rill/train/sparse_columns.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `coordinate_descent` bound to one rank: its replica of the model, and the score of each sample.
template <class Net, class Policy, std::floating_point T>
class bound_coordinate_descent {
    using loss_type = typename Policy::loss_type;

  public:
    /// `data` must outlive it.
    bound_coordinate_descent(Net& net, const Policy& policy, const sparse_columns& data, const group_options& options)
        : workers_(net, policy.topology, options),
          policy_(policy),
          data_(&data),
          own_(part_of(net.rank())),
          parameters_(data.columns + 1, T{0}),
          scores_(data.rows, T{0}),
          curvatures_(own_.size()),
          moved_(parameters_.size()),
          all_moved_(parameters_.size()) {
        rill::detail::require_option(policy.coordinates > 0, "train::coordinate_descent: coordinates",
                                     policy.coordinates, "at least 1", net.rank());
        rill::detail::require_option(policy.l2 >= 0 && std::isfinite(policy.l2), "train::coordinate_descent: l2",
                                     policy.l2, "at least 0 and finite", net.rank());
        RILL_EXPECTS(data.rows > 0, "coordinate_descent: a sample");
        RILL_EXPECTS(data.is_consistent(),
                     "coordinate_descent: columns, entries and labels as `by_columns` gives them");
        const auto are_finite = [](const std::vector<float>& all) {
            return !kernel::find_non_finite(std::span<const float>(all));
        };
        RILL_EXPECTS(are_finite(data.values) && are_finite(data.labels),
                     "coordinate_descent: values and labels that are finite");
        constexpr option_names names{
            {"number of coordinates in a step", "l2", "loss or coding of the moves", "number of samples", "samples"}};
        agree(workers_, names,
              {option_hash(policy.coordinates), option_hash(std::bit_cast<std::uint64_t>(policy.l2)),
               option_hash(mix64(fingerprint(loss_type::name), policy.codes.fingerprint())), option_hash(data.rows),
               option_hash(data.fingerprint())});
        if (!own_.empty())
            order_.emplace(sampler::options{.rows = own_.size(),
                                            .batch = std::min(policy.coordinates, own_.size()),
                                            .key = random_key{options.seed}.derive(net.rank())});
        measure();
    }

    auto& workers() { return workers_; }
    /// The weights of the columns, and the bias.
    std::span<const T> parameters() const { return span_of(parameters_); }
    /// Of each sample. They are kept up to date, the same bits on all ranks.
    std::span<const T> scores() const { return span_of(scores_); }

    /// The mean loss of all samples and the penalty; a pass over the samples and the parameters.
    double loss() const {
        double sum = 0, squares = 0;
        for (std::size_t i = 0; i < scores_.size(); ++i) sum += loss_type::value(scores_[i], data_->labels[i]);
        for (const T weight : parameters().first(data_->columns))
            squares += static_cast<double>(weight) * static_cast<double>(weight);
        return sum / static_cast<double>(data_->rows) + 0.5 * policy_.l2 * squares;
    }

    /// Moves the next coordinates of each rank. Collective.
    receipt step() {
        choose();
        moved_.clear({0, parameters_.size()});
        for (const std::uint32_t c : chosen_) moved_.push_back(c, step_of(c));
        const receipt done = all_gather(workers_, moved_, all_moved_, policy_.codes);
        if (const auto bad = kernel::find_non_finite<T>(all_moved_.values())) refuse(all_moved_.indices()[*bad]);
        for (std::size_t e = 0; e < all_moved_.count(); ++e) move(all_moved_.indices()[e], all_moved_.values()[e]);
        return done;
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "parameters", parameters_);
        out.add(std::string(prefix) + "scores", scores_);
        out.add(std::string(prefix) + "operation", workers_.operation_number());
        out.add(std::string(prefix) + "samples", data_->fingerprint());
        if (order_) order_->save(out, prefix);
    }
    /// Collective: all ranks restore what they saved after one step, and go on with the same coordinates and the same
    /// rounding if their group has the name and the seed of the saved one. Throws `data_error` on all ranks, and
    /// changes nothing, if the file of one does not fit its samples, its place or the files of the others. Pass what
    /// `checkpoint::open` returns.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        auto parameters = parameters_;
        auto scores = scores_;
        auto order = order_;
        std::uint64_t operation = 0;
        std::exception_ptr refused;
        try {
            in.read(std::string(prefix) + "parameters", parameters);
            in.read(std::string(prefix) + "scores", scores);
            operation = in.template read<std::uint64_t>(std::string(prefix) + "operation");
            const std::string samples = std::string(prefix) + "samples";
            if (in.count(samples) != 0 && in.template read<std::uint64_t>(samples) != data_->fingerprint())
                throw data_error(in.path(), "section \"" + samples + "\"", "the samples of this run", "others");
            if (order) order->restore(in, prefix);
        } catch (const std::exception&) {
            refused = std::current_exception();  // thrown after the other ranks have been told
        }
        const std::uint64_t sum =
            mix64(checksum(std::as_bytes(std::span(parameters))), checksum(std::as_bytes(std::span(scores))));
        const auto add_up = [&](std::span<std::int64_t> table) {
            detail::without_number(workers_, [&] { all_reduce(workers_, table, table); });
        };
        detail::require_common_files({in.path(), workers_.rank(), workers_.size(), refused, operation, sum},
                                     "operation", add_up);
        parameters_.swap(parameters);
        scores_.swap(scores);
        order_ = std::move(order);
        workers_.resume_at(operation);
    }

  private:
    bool is_bias(std::size_t c) const { return c == data_->columns; }

    segment part_of(rank_t rank) const {
        return split(data_->columns + 1, static_cast<std::size_t>(workers_.size()), static_cast<std::size_t>(rank));
    }

    [[noreturn, gnu::cold, gnu::noinline]] void refuse(std::size_t c) const {
        rank_t owner = 0;
        while (part_of(owner).end <= c) ++owner;
        throw invalid_value(abort_notice{
            .kind = failure::invalid_value,
            .culprit = owner,
            .reason = text_of({"coordinate_descent: rank ", owner, ": the move of coordinate ", c, " is not finite"})});
    }

    /// Curvatures along the own coordinates, and by how much steps are shortened because many are made at once.
    void measure() {
        const auto rows = static_cast<double>(data_->rows);
        for (std::size_t c = own_.begin; c < own_.end; ++c) {
            double squares = is_bias(c) ? rows : 0;
            if (!is_bias(c)) {
                const auto column = data_->column(c);
                for (std::size_t i = 0; i < column.size(); ++i)
                    squares += static_cast<double>(column.value(i)) * static_cast<double>(column.value(i));
            }
            curvatures_[c - own_.begin] = loss_type::curvature * squares / rows + (is_bias(c) ? 0 : policy_.l2);
        }
        std::vector<std::uint32_t> entries(data_->rows, 1);  // the bias
        for (const std::uint32_t row : data_->indices) ++entries[row];
        const double most = *std::max_element(entries.begin(), entries.end()),
                     all = static_cast<double>(data_->columns) + 1;
        double at_once = 0;
        for (rank_t rank = 0; rank < workers_.size(); ++rank) {
            at_once += static_cast<double>(std::min(policy_.coordinates, part_of(rank).size()));
        }
        shortening_ = all > 1 ? 1 + (most - 1) * (at_once - 1) / (all - 1) : 1;
    }

    void choose() {
        chosen_.clear();
        if (!order_) return;
        for (const std::uint32_t each : order_->next())
            chosen_.push_back(static_cast<std::uint32_t>(own_.begin) + each);
        std::sort(chosen_.begin(), chosen_.end());
    }

    T step_of(std::uint32_t c) const {
        const double curvature = curvatures_[c - own_.begin];
        // No entries, or values near 0, and no penalty: a move could be infinite.
        if (curvature < static_cast<double>(std::numeric_limits<T>::min())) return T{0};
        double slope = 0;
        if (is_bias(c)) {
            for (std::size_t i = 0; i < scores_.size(); ++i)
                slope += static_cast<double>(loss_type::slope(scores_[i], data_->labels[i]));
        } else {
            const auto column = data_->column(c);
            for (std::size_t i = 0; i < column.size(); ++i) {
                const std::uint32_t row = column.rows[i];
                slope += static_cast<double>(loss_type::slope(scores_[row], data_->labels[row])) *
                         static_cast<double>(column.value(i));
            }
        }
        slope /= static_cast<double>(data_->rows);
        if (!is_bias(c)) slope += policy_.l2 * static_cast<double>(parameters_[c]);
        return static_cast<T>(-slope / (shortening_ * curvature));
    }

    void move(std::uint32_t c, T by) {
        if (by == T{0}) return;
        parameters_[c] += by;
        if (is_bias(c)) {
            for (T& score : scores_) score += by;
            return;
        }
        const auto column = data_->column(c);
        for (std::size_t i = 0; i < column.size(); ++i) scores_[column.rows[i]] += by * static_cast<T>(column.value(i));
    }

    group<Net, decltype(Policy::topology)> workers_;
    Policy policy_;
    const sparse_columns* data_;
    segment own_;
    aligned_vector<T> parameters_, scores_;
    std::vector<double> curvatures_;
    double shortening_ = 1;
    std::optional<sampler> order_;
    std::vector<std::uint32_t> chosen_;
    stream<T> moved_, all_moved_;
};

/// Stochastic coordinate descent of a linear model on sparse data: in each step every rank moves some of its own
/// coordinates, and all ranks learn of all moves.
///
/// Rank r owns the coordinates `split(columns + 1, P, r)`, the last of which is the bias, and takes them in random
/// order. It needs the samples of all ranks, by columns. A coordinate moves by its slope over (its curvature times β),
/// where β = 1 + (ω - 1)(τ - 1) / columns for τ coordinates at once and rows of at most ω entries; so the expected loss
/// falls although the ranks do not know of each other's moves. `codes` may round moves, which are then the same on all
/// ranks.
///
/// Cost per step: an `all_gather` of streams over `topology`; the entries of the own columns once, those of all moved
/// columns once. Memory: parameters, a score per sample, twice the moves. Deterministic: parameters and scores are the
/// same bits on all ranks. A column whose values T can hardly tell from 0 does not move. Errors: `bind` throws
/// `mismatch` if ranks differ in options, in the loss, or in the samples; `step` throws as `all_gather` does, and
/// `invalid_value` on all ranks, naming the owner, if a move is too large for T; the model is then as before the step.
/// Source: SparCML (Renggli et al., SC 2019), section 8.2, after Wright, Coordinate descent algorithms, Mathematical
/// Programming 2015; the length of a step: Richtárik and Takáč, Parallel coordinate descent methods for big data
/// optimization, Mathematical Programming 2016.
template <SmoothLoss Loss = logistic, Topology Shape = topology::recursive_doubling>
struct coordinate_descent {
    using loss_type = Loss;

    Shape topology{};
    std::size_t coordinates = 100;  ///< that each rank moves in a step
    double l2 = 0;                  ///< the penalty ½ l2 · |w|² of the weights without the bias
    coding codes{};                 ///< of the moves

    /// `data`: the same on all ranks; it must outlive what is bound. Collective.
    template <std::floating_point T = float, class Net>
    bound_coordinate_descent<Net, coordinate_descent, T> bind(Net& net, const sparse_columns& data,
                                                              const group_options& options = {}) const {
        return {net, *this, data, options};
    }
    friend constexpr bool operator==(const coordinate_descent&, const coordinate_descent&) = default;
};

}}}  // namespace rill::RILL_ABI::train
