// rill 0.1.0: <rill/coding/any_code.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_CODING_ANY_CODE_HPP
#define RILL_SINGLE_CODING_ANY_CODE_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/coding/any_code.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/coding/any_code.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_CODING_DETAIL_LINEAR_HPP
#define RILL_SINGLE_CODING_DETAIL_LINEAR_HPP

// ===== rill/coding/detail/linear.hpp

// What decoding needs of linear algebra, for systems of tens to hundreds of unknowns.

namespace rill::inline RILL_ABI::codes::detail {

/// A dense matrix, row by row.
struct matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<double> values = std::vector<double>(rows * columns);

    double* operator[](std::size_t row) { return values.data() + row * columns; }
    const double* operator[](std::size_t row) const { return values.data() + row * columns; }
};

inline double dot(const double* x, const double* y, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += x[i] * y[i];
    return sum;
}
/// y += factor · x
inline void add(double factor, const double* x, double* y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

/// Solves the square system A x = b by elimination with partial pivoting; x replaces b. False where A is singular to
/// the last bit: then A and b are spoilt.
inline bool solve_square(matrix& a, std::vector<double>& b) {
    const std::size_t size = a.rows;
    for (std::size_t k = 0; k < size; ++k) {
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < size; ++i)
            if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
        if (!(std::abs(a[pivot][k]) > 0)) return false;
        if (pivot != k) {
            std::swap_ranges(a[k] + k, a[k] + size, a[pivot] + k);
            std::swap(b[k], b[pivot]);
        }
        const double inverse = 1 / a[k][k];
        for (std::size_t i = k + 1; i < size; ++i) {
            const double factor = -a[i][k] * inverse;
            add(factor, a[k] + k + 1, a[i] + k + 1, size - k - 1);
            b[i] += factor * b[k];
        }
    }
    for (std::size_t k = size; k-- > 0;) b[k] = (b[k] - dot(a[k] + k + 1, b.data() + k + 1, size - k - 1)) / a[k][k];
    return true;
}

/// Orthonormal vectors that span the rows of a matrix: Gram-Schmidt, done twice, the longest remainder first.
///
/// Row `order[j]` of the matrix is Σ over i ≤ j of `r[i][j]` · `q[i]`, but for the rows past `rank`, whose remainders
/// are below `cutoff` times the longest row.
struct orthogonal_rows {
    std::size_t rank = 0;
    std::vector<std::size_t> order;
    matrix q;
    matrix r;

    orthogonal_rows(matrix rows, double cutoff, std::size_t most)
        : order(rows.rows), q(std::move(rows)), r{q.rows, q.rows} {
        std::vector<double> lengths(q.rows);
        for (std::size_t i = 0; i < q.rows; ++i) {
            order[i] = i;
            lengths[i] = std::sqrt(dot(q[i], q[i], q.columns));
        }
        const double least = cutoff * (q.rows == 0 ? 0 : *std::max_element(lengths.begin(), lengths.end()));
        for (; rank < std::min(q.rows, most); ++rank) {
            bring_longest(lengths);
            subtract_earlier();
            const double length = std::sqrt(dot(q[rank], q[rank], q.columns));
            if (!(length > least)) return;
            r[rank][rank] = length;
            for (std::size_t c = 0; c < q.columns; ++c) q[rank][c] /= length;
            subtract_from_later(lengths);
        }
    }

  private:
    void bring_longest(std::vector<double>& lengths) {
        const auto longest = static_cast<std::size_t>(
            std::max_element(lengths.begin() + static_cast<std::ptrdiff_t>(rank), lengths.end()) - lengths.begin());
        if (longest == rank) return;
        std::swap(lengths[rank], lengths[longest]);
        std::swap(order[rank], order[longest]);
        std::swap_ranges(q[rank], q[rank] + q.columns, q[longest]);
        for (std::size_t i = 0; i < rank; ++i) std::swap(r[i][rank], r[i][longest]);
    }
    void subtract_earlier() {
        for (std::size_t i = 0; i < rank; ++i) {
            const double left = dot(q[i], q[rank], q.columns);
            add(-left, q[i], q[rank], q.columns);
            r[i][rank] += left;
        }
    }
    void subtract_from_later(std::vector<double>& lengths) {
        for (std::size_t j = rank + 1; j < q.rows; ++j) {
            r[rank][j] = dot(q[rank], q[j], q.columns);
            add(-r[rank][j], q[rank], q[j], q.columns);
            lengths[j] = std::sqrt(dot(q[j], q[j], q.columns));
        }
    }
};

/// Σ x[i] · row i of what `rows` was made of comes closest to `target`, with x = 0 for rows past the rank; returns the
/// distance.
inline double least_squares(const orthogonal_rows& rows, std::span<const double> target, std::span<double> x) {
    std::vector<double> remainder(target.begin(), target.end());
    std::vector<double> along(rows.rank);
    for (int pass = 0; pass < 2; ++pass)
        for (std::size_t i = 0; i < rows.rank; ++i) {
            const double part = dot(rows.q[i], remainder.data(), remainder.size());
            add(-part, rows.q[i], remainder.data(), remainder.size());
            along[i] += part;
        }
    std::fill(x.begin(), x.end(), 0.0);
    for (std::size_t i = rows.rank; i-- > 0;) {
        along[i] /= rows.r[i][i];
        x[rows.order[i]] = along[i];
        for (std::size_t j = 0; j < i; ++j) along[j] -= rows.r[j][i] * along[i];
    }
    return std::sqrt(dot(remainder.data(), remainder.data(), remainder.size()));
}

/// The shortest x whose product with row i of what `rows` was made of is `products[i]`; the rows are independent.
inline std::vector<double> shortest_solution(const orthogonal_rows& rows, std::span<const double> products) {
    std::vector<double> x(rows.q.columns);
    std::vector<double> along(rows.rank);
    for (std::size_t j = 0; j < rows.rank; ++j) {
        double rest = products[rows.order[j]];
        for (std::size_t i = 0; i < j; ++i) rest -= rows.r[i][j] * along[i];
        along[j] = rest / rows.r[j][j];
        add(along[j], rows.q[j], x.data(), x.size());
    }
    return x;
}

/// Orthonormal rows that complete the first `rows.rank` of `rows.q` to a basis.
inline matrix orthogonal_complement(const orthogonal_rows& rows) {
    const std::size_t size = rows.q.columns;
    const std::size_t missing = size - rows.rank;
    matrix units{size, size};
    for (std::size_t u = 0; u < size; ++u) {
        units[u][u] = 1;
        for (int pass = 0; pass < 2; ++pass)
            for (std::size_t i = 0; i < rows.rank; ++i) add(-dot(rows.q[i], units[u], size), rows.q[i], units[u], size);
    }
    orthogonal_rows rest(std::move(units), 0, missing);
    rest.q.values.resize(missing * size);
    rest.q.rows = missing;
    return std::move(rest.q);
}

}  // namespace rill::inline RILL_ABI::codes::detail

#endif  // RILL_SINGLE_CODING_DETAIL_LINEAR_HPP

#ifndef RILL_SINGLE_CODING_DETAIL_DUAL_HPP
#define RILL_SINGLE_CODING_DETAIL_DUAL_HPP

// ===== rill/coding/detail/dual.hpp

namespace rill::inline RILL_ABI::codes::detail {

/// All decoding rows of a code at once: `base` + any combination of the rows of `null`, which are orthonormal, span
/// what times B vanishes, and are orthogonal to `base`.
struct dual {
    matrix null;               ///< a column for each worker
    std::vector<double> base;  ///< an element for each worker
};

/// The dual of a matrix B whose rank is at most `most`; nothing tells whether any row reaches 1 at all.
inline dual dual_of(const matrix& b, std::size_t most) {
    matrix transposed{b.columns, b.rows};
    for (std::size_t i = 0; i < b.rows; ++i)
        for (std::size_t j = 0; j < b.columns; ++j) transposed[j][i] = b[i][j];
    constexpr double cutoff = 1e-12;
    dual d{orthogonal_complement(orthogonal_rows(std::move(transposed), cutoff, most)), std::vector<double>(b.rows)};
    least_squares(orthogonal_rows(b, cutoff, most), std::vector<double>(b.columns, 1.0), d.base);
    for (std::size_t i = 0; i < d.null.rows; ++i)
        add(-dot(d.null[i], d.base.data(), b.rows), d.null[i], d.base.data(), b.rows);
    return d;
}

/// What makes `base` + Σ products[j] · `null[j]` vanish at the `lost` workers, or comes closest to it; of several the
/// shortest. Nothing where the equations depend on each other.
inline std::vector<double> products_without(const dual& d, const std::vector<int>& lost) {
    const std::size_t unknowns = d.null.rows;
    std::vector<double> wanted(lost.size());
    for (std::size_t i = 0; i < lost.size(); ++i) wanted[i] = -d.base[static_cast<std::size_t>(lost[i])];
    if (lost.size() > unknowns) {
        matrix parts{unknowns, lost.size()};
        for (std::size_t j = 0; j < unknowns; ++j)
            for (std::size_t i = 0; i < lost.size(); ++i) parts[j][i] = d.null[j][lost[i]];
        std::vector<double> products(unknowns);
        least_squares(orthogonal_rows(std::move(parts), 1e-13, unknowns), wanted, products);
        return products;
    }
    matrix equations{lost.size(), unknowns};
    for (std::size_t i = 0; i < lost.size(); ++i)
        for (std::size_t j = 0; j < unknowns; ++j) equations[i][j] = d.null[j][lost[i]];
    if (lost.size() == unknowns) {
        if (!solve_square(equations, wanted)) return {};
        return wanted;
    }
    const orthogonal_rows independent(std::move(equations), 1e-13, lost.size());
    if (independent.rank < lost.size()) return {};
    return shortest_solution(independent, wanted);
}

/// A decoding row, with an element for each worker, and how far from 1 it takes B at most.
struct bounded_row {
    std::vector<double> row;
    double error = std::numeric_limits<double>::infinity();
};

/// How much of what a `dual` says of its matrix drowned in rounding errors.
struct dual_errors {
    double base = 0;                  ///< ‖base·B − 1‖₂
    double null = 0;                  ///< the largest ‖null[j]·B‖₂
    std::vector<double> row_lengths;  ///< ‖b_i‖₂

    dual_errors(const dual& d, const matrix& b) {
        for (std::size_t i = 0; i < b.rows; ++i) row_lengths.push_back(std::sqrt(dot(b[i], b[i], b.columns)));
        base = length_of_product(d.base.data(), b, -1);
        for (std::size_t j = 0; j < d.null.rows; ++j) null = std::max(null, length_of_product(d.null[j], b, 0));
    }

  private:
    static double length_of_product(const double* row, const matrix& b, double start) {
        std::vector<double> sums(b.columns, start);
        for (std::size_t i = 0; i < b.rows; ++i) add(row[i], b[i], sums.data(), b.columns);
        return std::sqrt(dot(sums.data(), sums.data(), sums.size()));
    }
};

/// The row that takes B to 1 without the `lost` workers, whose elements mean nothing; its error is large where there is
/// none.
inline bounded_row row_without(const dual& d, const dual_errors& errors, const std::vector<int>& lost) {
    const std::vector<double> products = products_without(d, lost);
    if (products.size() != d.null.rows) return {};
    bounded_row found{d.base, errors.base};
    for (std::size_t j = 0; j < products.size(); ++j) {
        add(products[j], d.null[j], found.row.data(), found.row.size());
        found.error += std::abs(products[j]) * errors.null;
    }
    for (const int worker : lost) {
        const auto w = static_cast<std::size_t>(worker);
        found.error += std::abs(found.row[w]) * errors.row_lengths[w];
    }
    return found;
}

}  // namespace rill::inline RILL_ABI::codes::detail

#endif  // RILL_SINGLE_CODING_DETAIL_DUAL_HPP

#ifndef RILL_SINGLE_CODING_DETAIL_WORKER_SET_HPP
#define RILL_SINGLE_CODING_DETAIL_WORKER_SET_HPP

// ===== rill/coding/detail/worker_set.hpp

namespace rill::inline RILL_ABI::codes::detail {

/// Some of up to `capacity` workers, a bit for each.
class worker_set {
  public:
    static constexpr int capacity = 1024;
    static constexpr std::size_t words_for(int workers) { return (static_cast<std::size_t>(workers) + 63) / 64; }

    /// Distinct workers below `workers`, in any order.
    worker_set(std::span<const int> members, int workers) : words_(words_for(workers)) {
        for (const int worker : members) {
            RILL_EXPECTS(0 <= worker && worker < workers, "gradient code: a survivor is none of the workers");
            bits_[word(worker)] |= bit(worker);
        }
        RILL_EXPECTS(count() == members.size(), "gradient code: a worker is twice among the survivors");
    }

    bool contains(int worker) const { return (bits_[word(worker)] & bit(worker)) != 0; }
    std::size_t count() const {
        int count = 0;
        for (const std::uint64_t bits : words()) count += std::popcount(bits);
        return static_cast<std::size_t>(count);
    }
    std::span<const std::uint64_t> words() const { return {bits_.data(), words_}; }
    std::uint64_t hash() const {
        std::uint64_t mixed = 0;
        for (const std::uint64_t bits : words()) mixed = mix64(mixed ^ bits);
        return mixed;
    }

  private:
    static constexpr std::size_t word(int worker) { return static_cast<std::size_t>(worker) / 64; }
    static constexpr std::uint64_t bit(int worker) { return std::uint64_t{1} << (static_cast<unsigned>(worker) % 64); }

    std::array<std::uint64_t, capacity / 64> bits_{};
    std::size_t words_;
};

}  // namespace rill::inline RILL_ABI::codes::detail

#endif  // RILL_SINGLE_CODING_DETAIL_WORKER_SET_HPP

#ifndef RILL_SINGLE_CODING_DETAIL_ROW_CACHE_HPP
#define RILL_SINGLE_CODING_DETAIL_ROW_CACHE_HPP

// ===== rill/coding/detail/row_cache.hpp

namespace rill::inline RILL_ABI::codes::detail {

/// The rows of the survivor sets asked for last: at most 256 of them and 1 MiB, four to a bucket, where the one that
/// was not asked for longest makes room. Safe to use from several threads, which wait for each other for the time of a
/// copy.
class row_cache {
  public:
    explicit row_cache(int workers)
        : workers_(static_cast<std::size_t>(workers)), words_(worker_set::words_for(workers)) {
        while (buckets_ > 1 && buckets_ * ways * workers_ * sizeof(double) > most_bytes) buckets_ /= 2;
    }

    /// The error of the row of `set`, whose coefficients for `survivors` go to `row`; nothing where it is not held.
    std::optional<double> find(const worker_set& set, std::span<const int> survivors, std::span<double> row) {
        const std::size_t bucket = set.hash() & (buckets_ - 1);
        const lock held(busy_);
        if (entries_.empty()) return std::nullopt;
        for (std::size_t slot = bucket * ways; slot < (bucket + 1) * ways; ++slot) {
            if (entries_[slot].used == 0 ||
                !std::equal(set.words().begin(), set.words().end(), keys_.data() + slot * words_))
                continue;
            entries_[slot].used = ++now_;
            const double* values = rows_.data() + slot * workers_;
            for (std::size_t i = 0; i < survivors.size(); ++i) row[i] = values[survivors[i]];
            return entries_[slot].error;
        }
        return std::nullopt;
    }

    /// Keeps a row with an element for each worker.
    void keep(const worker_set& set, std::span<const double> row, double error) {
        const std::size_t bucket = set.hash() & (buckets_ - 1);
        const lock held(busy_);
        if (entries_.empty()) {
            keys_.resize(buckets_ * ways * words_);
            rows_.resize(buckets_ * ways * workers_);
            entries_.resize(buckets_ * ways);
        }
        std::size_t oldest = bucket * ways;
        for (std::size_t slot = oldest + 1; slot < (bucket + 1) * ways; ++slot)
            if (entries_[slot].used < entries_[oldest].used) oldest = slot;
        std::copy(set.words().begin(), set.words().end(), keys_.data() + oldest * words_);
        std::copy(row.begin(), row.end(), rows_.data() + oldest * workers_);
        entries_[oldest] = {.used = ++now_, .error = error};
    }

  private:
    static constexpr std::size_t ways = 4;
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;

    struct entry {
        std::uint64_t used = 0;  ///< when it was asked for last; 0: empty
        double error = 0;
    };

    class lock {
      public:
        explicit lock(std::atomic_flag& flag) : flag_(flag) {
            while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true, std::memory_order_relaxed);
        }
        ~lock() {
            flag_.clear(std::memory_order_release);
            flag_.notify_one();
        }
        lock(const lock&) = delete;
        lock& operator=(const lock&) = delete;

      private:
        std::atomic_flag& flag_;
    };

    std::size_t workers_;
    std::size_t words_;
    std::size_t buckets_ = 64;
    std::vector<std::uint64_t> keys_;
    std::vector<double> rows_;
    std::vector<entry> entries_;
    std::uint64_t now_ = 0;
    std::atomic_flag busy_;
};

}  // namespace rill::inline RILL_ABI::codes::detail

#endif  // RILL_SINGLE_CODING_DETAIL_ROW_CACHE_HPP

#ifndef RILL_SINGLE_CONCEPT_GRADIENT_CODE_HPP
#define RILL_SINGLE_CONCEPT_GRADIENT_CODE_HPP

// ===== rill/concept/gradient_code.hpp

namespace rill::inline RILL_ABI {

/// Who computes the gradient of which partitions of the data, with which coefficients, and how their sum is regained
/// when some workers are missing: a matrix B with a row for each of `workers()` and a column for each of
/// `partitions()`, all of them real numbers.
///
/// Worker w computes and sends b_w·G = Σ coefficients_of(w)[j] · gradient of partition partitions_of(w)[j]: encoding is
/// a weight per partition. Partitions are numbered `0 … partitions()-1`, each worker's in ascending order.
///
/// Survivors are distinct workers in any order. A set is decodable when a row a with a·B = 1 exists that is zero
/// outside of it; any `workers() - stragglers()` of them are. `decoding_row(survivors, row)` writes such an a, `row[i]`
/// for `survivors[i]`; a set that is not decodable breaks its contract. `approximate_row` does the same for any set,
/// with the a of least ‖a·B − 1‖₂, which it returns.
///
/// A code of which fewer may be enough says so by `least_survivors()`: with fewer than that nobody need ask.
///
/// Codes are immutable: several threads may ask one at the same time, and the same survivors get the same bits always.
template <class C>
concept GradientCode =
    std::copyable<C> && requires(const C& code, int worker, std::span<const int> survivors, std::span<double> row) {
        { code.workers() } -> std::same_as<int>;
        { code.partitions() } -> std::same_as<int>;
        { code.stragglers() } -> std::same_as<int>;
        { code.partitions_of(worker) } -> std::convertible_to<std::span<const int>>;
        { code.coefficients_of(worker) } -> std::convertible_to<std::span<const double>>;
        { code.is_decodable(survivors) } -> std::same_as<bool>;
        { code.decoding_row(survivors, row) };
        { code.approximate_row(survivors, row) } -> std::same_as<double>;
    };

/// A value that is bound to numbers of workers and stragglers to give a code.
template <class P>
concept GradientCodePolicy = std::regular<P> && requires(const P& policy, int workers, int stragglers) {
    { policy.bind(workers, stragglers) } -> GradientCode;
    { P::name } -> std::convertible_to<const char*>;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CONCEPT_GRADIENT_CODE_HPP

#ifndef RILL_SINGLE_CODING_DUAL_CODE_HPP
#define RILL_SINGLE_CODING_DUAL_CODE_HPP

// ===== rill/coding/dual_code.hpp

namespace rill::inline RILL_ABI::codes {

/// A gradient code given by its matrix B, decoded through the rows that B takes to zero: with s stragglers a system of
/// s equations, whatever the number of workers.
///
/// Cost, with n workers, s lost: a row takes O(s³ + n·s) the first time and O(n) while it is among the last 256 that
/// were asked for (fewer where they would take more than 1 MiB). Copies share one table of rows. At most 1024 workers.
/// Determinism: the same survivors get the same bits, in whatever order, of several rows the shortest.
class dual_code {
  public:
    /// The code whose matrix is `b`; `dual` belongs to it, and any `stragglers` workers may be lost.
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

    /// Solves for the row, which a call of `decoding_row` then has at hand.
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

    /// The returned ‖a·B − 1‖₂ is 0 where the survivors are decodable.
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
        std::vector<std::size_t> starts;  // of each worker's entries below, and their end
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

    /// A row with an element for each worker, which is then kept, or nothing.
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

}  // namespace rill::inline RILL_ABI::codes

#endif  // RILL_SINGLE_CODING_DUAL_CODE_HPP

#ifndef RILL_SINGLE_CODING_GROUP_CODE_HPP
#define RILL_SINGLE_CODING_GROUP_CODE_HPP

// ===== rill/coding/group_code.hpp

namespace rill::inline RILL_ABI::codes {

/// Repetition: the workers form groups of more than `stragglers()` neighbours, those of one group compute the same sum
/// of neighbouring partitions, and one survivor of each group is enough.
///
/// The lowest survivor of each group has coefficient 1, all others have 0: what is decoded has the same bits whoever is
/// lost. Any set that has a survivor in each group is decodable, however many are lost.
/// Cost: a row takes O(survivors) when they are in ascending order, O(survivors²) otherwise; nothing is allocated.
class group_code {
  public:
    /// `groups` of nearly equal size, each with its own `partitions_per_group`.
    group_code(int workers, int stragglers, int groups, int partitions_per_group)
        : workers_(workers),
          stragglers_(stragglers),
          groups_(groups),
          each_(static_cast<std::size_t>(partitions_per_group)) {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "gradient code: stragglers are at least 0 and fewer than the workers");
        RILL_EXPECTS(0 < groups && groups <= workers / (stragglers + 1), "gradient code: a group is lost as a whole");
        RILL_EXPECTS(partitions_per_group > 0, "gradient code: a group has no partition");
        ones_.assign(each_, 1.0);
        for (int j = 0; j < groups * partitions_per_group; ++j) numbers_.push_back(j);
    }

    int workers() const { return workers_; }
    int partitions() const { return static_cast<int>(numbers_.size()); }
    int stragglers() const { return stragglers_; }
    /// The fewest that may be decodable: one of each group.
    int least_survivors() const { return groups_; }
    int groups() const { return groups_; }
    int group_of(int worker) const {
        RILL_EXPECTS(0 <= worker && worker < workers_, "gradient code: no such worker");
        return static_cast<int>((static_cast<long long>(worker + 1) * groups_ - 1) / workers_);
    }

    std::span<const int> partitions_of(int worker) const {
        return std::span(numbers_).subspan(static_cast<std::size_t>(group_of(worker)) * each_, each_);
    }
    std::span<const double> coefficients_of(int worker) const {
        static_cast<void>(group_of(worker));
        return ones_;
    }

    bool is_decodable(std::span<const int> survivors) const { return present(survivors, nullptr) == groups_; }

    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        const double error = approximate_row(survivors, row);
        RILL_EXPECTS(error == 0, "gradient code: too few workers are left to decode the gradient");
        static_cast<void>(error);
    }

    /// Leaves out the groups that are lost as a whole: ‖a·B − 1‖₂ is the square root of the number of their partitions.
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        RILL_EXPECTS(row.size() == survivors.size(), "gradient code: a row has one coefficient per survivor");
        const int missing = groups_ - present(survivors, row.data());
        return std::sqrt(static_cast<double>(missing) * static_cast<double>(each_));
    }

  private:
    /// How many groups have a survivor; marks their lowest in `row`, where there is one.
    int present(std::span<const int> survivors, double* row) const {
        bool ascending = true;
        for (std::size_t i = 1; i < survivors.size(); ++i) ascending = ascending && survivors[i - 1] < survivors[i];
        int found = 0, before = -1;
        for (std::size_t i = 0; i < survivors.size(); ++i) {
            const int group = group_of(survivors[i]);
            const bool first = ascending ? group != before : is_lowest(survivors, i);
            before = group;
            found += first ? 1 : 0;
            if (row != nullptr) row[i] = first ? 1 : 0;
        }
        return found;
    }
    bool is_lowest(std::span<const int> survivors, std::size_t at) const {
        const int group = group_of(survivors[at]);
        bool lowest = true;
        for (std::size_t i = 0; i < survivors.size(); ++i) {
            RILL_EXPECTS(i == at || survivors[i] != survivors[at],
                         "gradient code: a worker is twice among the survivors");
            lowest = lowest && (survivors[i] >= survivors[at] || group_of(survivors[i]) != group);
        }
        return lowest;
    }

    int workers_;
    int stragglers_;
    int groups_;
    std::size_t each_;
    std::vector<int> numbers_;  // 0 … partitions-1
    std::vector<double> ones_;
};

static_assert(GradientCode<group_code>);

}  // namespace rill::inline RILL_ABI::codes

#endif  // RILL_SINGLE_CODING_GROUP_CODE_HPP

// ===== rill/coding/any_code.hpp

namespace rill::inline RILL_ABI::codes {

/// Any of the library's codes, for choices that are made at run time.
class any_code {
  public:
    any_code(group_code code) : group_(std::move(code)) {}
    any_code(dual_code code) : dual_(std::move(code)) {}

    int workers() const { return dual_ ? dual_->workers() : group_->workers(); }
    int partitions() const { return dual_ ? dual_->partitions() : group_->partitions(); }
    int stragglers() const { return dual_ ? dual_->stragglers() : group_->stragglers(); }
    int least_survivors() const { return dual_ ? dual_->workers() - dual_->stragglers() : group_->least_survivors(); }
    std::span<const int> partitions_of(int worker) const {
        return dual_ ? dual_->partitions_of(worker) : group_->partitions_of(worker);
    }
    std::span<const double> coefficients_of(int worker) const {
        return dual_ ? dual_->coefficients_of(worker) : group_->coefficients_of(worker);
    }
    bool is_decodable(std::span<const int> survivors) const {
        return dual_ ? dual_->is_decodable(survivors) : group_->is_decodable(survivors);
    }
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        dual_ ? dual_->decoding_row(survivors, row) : group_->decoding_row(survivors, row);
    }
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        return dual_ ? dual_->approximate_row(survivors, row) : group_->approximate_row(survivors, row);
    }

  private:
    std::optional<dual_code> dual_;  // one of the two
    std::optional<group_code> group_;
};

static_assert(GradientCode<any_code>);

}  // namespace rill::inline RILL_ABI::codes

#endif  // RILL_SINGLE_CODING_ANY_CODE_HPP
