#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/gradient_code/detail/dual.hpp>
#include <rill/gradient_code/detail/linear.hpp>
#include <rill/gradient_code/detail/row_cache.hpp>
#include <rill/gradient_code/detail/worker_set.hpp>

#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A gradient code given by its matrix B. Models `GradientCode`.
///
/// It decodes through the rows x with x·B = 0: with s stragglers it solves a system of s equations, for any number of
/// workers. At most 1024 workers.
///
/// Cost, with n workers of which s are lost: a row takes O(s³ + n·s) the first time, and O(n) while it is in the cache
/// of 256 rows (fewer if they would take more than 1 MiB). Copies share one cache. Determinism: equal sets of survivors
/// get equal bits, in any order. Of several exact rows the shortest is taken.
class dual_code {
  public:
    /// Makes the code of the matrix `b`. `dual` is that of `b`. Any `stragglers` workers may be lost.
    dual_code(const detail::matrix& b, int stragglers, detail::dual dual)
        : state_(std::make_shared<state>(b, stragglers, std::move(dual))) {}

    int workers() const { return state_->workers; }
    int partitions() const { return state_->partitions; }
    int stragglers() const { return state_->stragglers; }

    std::span<const int> partitions_of(int worker) const {
        const std::size_t first = state_->checked_start(worker);
        return std::span(state_->columns).subspan(first, state_->start(worker + 1) - first);
    }
    std::span<const double> coefficients_of(int worker) const {
        const std::size_t first = state_->checked_start(worker);
        return std::span(state_->coefficients).subspan(first, state_->start(worker + 1) - first);
    }

    /// Solves for the row and caches it for a later `decoding_row`.
    bool is_decodable(std::span<const int> survivors) const {
        const detail::worker_set set(survivors, workers());
        if (const std::optional<double> error = state_->cache.find(set, {}, {})) return *error == 0;
        return !exact_row(set).empty();
    }

    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        RILL_EXPECTS(row.size() == survivors.size(), "gradient code: a row has one coefficient per survivor");
        const detail::worker_set set(survivors, workers());
        std::optional<double> error = state_->cache.find(set, survivors, row);
        if (!error) {
            const std::vector<double> full = exact_row(set);
            error = full.empty() ? 1 : 0;
            if (!full.empty()) pick(full, survivors, row);
        }
        RILL_EXPECTS(*error == 0, "gradient code: too few workers are left to decode the gradient");
    }

    /// Returns ‖a·B − 1‖₂, or 0 if the survivors are decodable.
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        RILL_EXPECTS(row.size() == survivors.size(), "gradient code: a row has one coefficient per survivor");
        const detail::worker_set set(survivors, workers());
        if (const std::optional<double> error = state_->cache.find(set, survivors, row)) return *error;
        std::vector<double> full = exact_row(set);
        double error = 0;
        if (full.empty()) {
            full = closest_row(set, error);
            state_->cache.keep(set, full, error);
        }
        pick(full, survivors, row);
        return error;
    }

  private:
    struct state {
        int workers, partitions, stragglers;
        std::vector<std::size_t> starts;  // where each worker's entries begin in `columns`, and the end
        std::vector<int> columns;
        std::vector<double> coefficients;
        detail::dual dual;
        detail::dual_errors errors;
        mutable detail::row_cache cache;

        state(const detail::matrix& b, int s, detail::dual of_b)
            : workers(static_cast<int>(b.rows)),
              partitions(static_cast<int>(b.columns)),
              stragglers(s),
              starts{0},
              dual(std::move(of_b)),
              errors(dual, b),
              cache(workers) {
            RILL_EXPECTS(0 <= s && s < workers, "gradient code: stragglers are at least 0 and fewer than the workers");
            RILL_EXPECTS(workers <= detail::worker_set::capacity, "gradient code: more than 1024 workers");
            for (std::size_t i = 0; i < b.rows; ++i) {
                for (std::size_t j = 0; j < b.columns; ++j)
                    if (b[i][j] != 0) {
                        columns.push_back(static_cast<int>(j));
                        coefficients.push_back(b[i][j]);
                    }
                starts.push_back(columns.size());
            }
        }
        std::size_t start(int worker) const { return starts[static_cast<std::size_t>(worker)]; }
        std::size_t checked_start(int worker) const {
            RILL_EXPECTS(0 <= worker && worker < workers, "gradient code: no such worker");
            return start(worker);
        }
    };

    static void pick(const std::vector<double>& full, std::span<const int> survivors, std::span<double> row) {
        for (std::size_t i = 0; i < survivors.size(); ++i) row[i] = full[static_cast<std::size_t>(survivors[i])];
    }
    bool is_exact(double error) const { return error <= 1e-6 * std::sqrt(static_cast<double>(partitions())); }

    /// Returns a row with an element for each worker and caches it; empty if there is none.
    std::vector<double> exact_row(const detail::worker_set& set) const {
        std::vector<int> lost;
        lost.reserve(static_cast<std::size_t>(workers()));
        for (int worker = 0; worker < workers(); ++worker)
            if (!set.contains(worker)) lost.push_back(worker);
        detail::bounded_row found = detail::row_without(state_->dual, state_->errors, lost);
        if (!is_exact(found.error)) return {};
        state_->cache.keep(set, found.row, 0);
        return std::move(found.row);
    }

    std::vector<double> closest_row(const detail::worker_set& set, double& error) const {
        std::vector<int> left;
        for (int worker = 0; worker < workers(); ++worker)
            if (set.contains(worker)) left.push_back(worker);
        detail::matrix b{left.size(), static_cast<std::size_t>(partitions())};
        for (std::size_t i = 0; i < left.size(); ++i) {
            const std::span<const int> at = partitions_of(left[i]);
            for (std::size_t j = 0; j < at.size(); ++j)
                b[i][static_cast<std::size_t>(at[j])] = coefficients_of(left[i])[j];
        }
        const std::size_t most = left.size();
        std::vector<double> some(left.size());
        error = detail::least_squares(detail::orthogonal_rows(std::move(b), 1e-12, most),
                                      std::vector<double>(static_cast<std::size_t>(partitions()), 1.0), some);
        std::vector<double> full(static_cast<std::size_t>(workers()));
        for (std::size_t i = 0; i < left.size(); ++i) full[static_cast<std::size_t>(left[i])] = some[i];
        return full;
    }

    std::shared_ptr<const state> state_;
};

static_assert(GradientCode<dual_code>);

}}}  // namespace rill::RILL_ABI::gradient_code
