#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/gradient_code/detail/dual.hpp>
#include <rill/gradient_code/detail/linear.hpp>
#include <rill/gradient_code/detail/worker_set.hpp>
#include <rill/gradient_code/dual_code.hpp>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A cyclic code of n partitions: worker i holds i … i+s (mod n). Models `GradientCodePolicy`.
///
/// The coefficients are those of a polynomial that vanishes at the s neighbouring roots of unity around -1. Hence any
/// n-s rows are independent, without a search.
///
/// Load (s+1)/n. The amplification is moderate for small s (at worst 14 for (12, 3), 42 for (12, 5)) and exceeds single
/// precision for large s: see `amplification` and `default_code`.
///
/// Source: Raviv et al., Gradient Coding from Cyclic MDS Codes and Expander Graphs. Over the real numbers such roots
/// exist only if n - s is odd. If it is even, s roots of -1 are taken instead: a row that wraps around changes its sign
/// there, and column j is divided by c_j, where c is the vector 1 minus its projections on these roots.
struct cyclic_mds {
    static constexpr const char* name = "cyclic_mds";

    dual_code bind(int workers, int stragglers) const {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "cyclic_mds: stragglers are at least 0 and fewer than the workers");
        RILL_EXPECTS(workers <= detail::worker_set::capacity, "cyclic_mds: more than 1024 workers");
        const roots zeros{workers, stragglers};
        const std::vector<double> taps = polynomial(zeros);
        detail::dual dual{null_rows(zeros), std::vector<double>(zeros.size())};
        const std::vector<double> scale = column_scale(zeros, dual.null);
        detail::matrix b{zeros.size(), zeros.size()};
        for (std::size_t i = 0; i < b.rows; ++i)
            for (std::size_t t = 0; t < taps.size(); ++t) {
                const std::size_t j = (i + t) % b.rows;
                b[i][j] = (zeros.turns() && i + t >= b.rows ? -taps[t] : taps[t]) / scale[j];
            }
        find_base(zeros, taps, dual.base);
        return {b, stragglers, std::move(dual)};
    }

    template <class Visit>
    constexpr void visit_options(Visit&&) const {}

    friend constexpr bool operator==(cyclic_mds, cyclic_mds) = default;

  private:
    /// The angles 2πf/n at which the polynomial vanishes, for f from n/2 - (s-1)/2 to n/2 + (s-1)/2 in steps of 1; the
    /// f are all integers or all half-integers.
    struct roots {
        int n, s;

        std::size_t size() const { return static_cast<std::size_t>(n); }
        /// Whether the powers of the roots change sign after n steps.
        bool turns() const { return (n - s) % 2 == 0; }
        double lowest() const { return 0.5 * (n - s + 1); }
        double angle(double f, int steps) const {
            return 2 * std::numbers::pi * std::fmod(f * steps, static_cast<double>(n)) / n;
        }
    };

    /// Returns the coefficients of Π (x² - 2 cos φ x + 1) over the pairs of roots, times x + 1 if -1 is a root, scaled
    /// to the sum s+1.
    static std::vector<double> polynomial(const roots& zeros) {
        std::vector<double> p{1};
        const auto times = [&](std::vector<double> factor) {
            std::vector<double> product(p.size() + factor.size() - 1);
            for (std::size_t i = 0; i < p.size(); ++i)
                detail::add(p[i], factor.data(), product.data() + i, factor.size());
            p = std::move(product);
        };
        for (int i = 0; i < zeros.s / 2; ++i) times({1, -2 * std::cos(zeros.angle(zeros.lowest() + i, 1)), 1});
        if (zeros.s % 2 == 1) times({1, 1});
        double sum = 0;
        for (const double tap : p) sum += tap;
        for (double& tap : p) tap *= (zeros.s + 1) / sum;
        return p;
    }

    /// Returns sines and cosines of the roots, to which every column of B is orthogonal.
    static detail::matrix null_rows(const roots& zeros) {
        detail::matrix null{static_cast<std::size_t>(zeros.s), zeros.size()};
        std::size_t row = 0;
        for (int i = 0; i < zeros.s / 2; ++i, row += 2)
            for (int j = 0; j < zeros.n; ++j) {
                const double angle = zeros.angle(zeros.lowest() + i, j);
                null[row][j] = std::sqrt(2.0 / zeros.n) * std::cos(angle);
                null[row + 1][j] = std::sqrt(2.0 / zeros.n) * std::sin(angle);
            }
        if (zeros.s % 2 == 1)
            for (int j = 0; j < zeros.n; ++j) null[row][j] = (j % 2 == 0 ? 1 : -1) / std::sqrt(zeros.n);
        return null;
    }

    static std::vector<double> column_scale(const roots& zeros, const detail::matrix& null) {
        std::vector<double> scale(zeros.size(), 1.0);
        if (!zeros.turns()) return scale;
        const std::vector<double> ones = scale;
        for (std::size_t i = 0; i < null.rows; ++i)
            detail::add(-detail::dot(null[i], ones.data(), ones.size()), null[i], scale.data(), scale.size());
        return scale;
    }

    /// Adds to `base` the row a with a·B = 1 that is orthogonal to `null_rows`. In the basis of the remaining roots, B
    /// only multiplies each component.
    static void find_base(const roots& zeros, const std::vector<double>& taps, std::vector<double>& base) {
        if (!zeros.turns()) {
            base.assign(zeros.size(), 1.0 / (zeros.s + 1));
            return;
        }
        for (double f = 0.5; f < zeros.lowest(); ++f) {
            double real = 0, imaginary = 0, gain_real = 0, gain_imaginary = 0;
            for (int j = 0; j < zeros.n; ++j) {
                real += std::cos(zeros.angle(f, j));
                imaginary -= std::sin(zeros.angle(f, j));
            }
            for (std::size_t t = 0; t < taps.size(); ++t) {
                gain_real += taps[t] * std::cos(zeros.angle(f, static_cast<int>(t)));
                gain_imaginary -= taps[t] * std::sin(zeros.angle(f, static_cast<int>(t)));
            }
            const double gain = gain_real * gain_real + gain_imaginary * gain_imaginary;
            const double part = (real * gain_real + imaginary * gain_imaginary) / gain;
            const double other = (imaginary * gain_real - real * gain_imaginary) / gain;
            for (int j = 0; j < zeros.n; ++j)
                base[static_cast<std::size_t>(j)] +=
                    2.0 / zeros.n * (part * std::cos(zeros.angle(f, j)) - other * std::sin(zeros.angle(f, j)));
        }
    }
};

static_assert(GradientCodePolicy<cyclic_mds>);

}}}  // namespace rill::RILL_ABI::gradient_code
