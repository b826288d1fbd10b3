#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/detail/dual.hpp>
#include <rill/gradient_code/detail/linear.hpp>
#include <rill/gradient_code/detail/worker_set.hpp>
#include <rill/gradient_code/dual_code.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A random cyclic code of n partitions: worker i holds i … i+s (mod n). Models `GradientCodePolicy`.
///
/// The rows of B are orthogonal to a random s×n matrix H with H·1 = 0.
///
/// Load (s+1)/n. Random codes amplify errors a hundred- to ten-thousandfold. With `draws` above 1, the draw with the
/// smallest worst amplification is taken, at the cost of an `amplification` per draw. `cyclic_mds` is better for few
/// stragglers; see `amplification` and `default_code`.
///
/// Determinism: the code is a function of (n, s, seed, draws).
/// Source: Tandon et al., Gradient Coding (ICML 2017), Algorithm 2, which draws once, from a normal distribution; here
/// elements are uniform in [-1, 1).
struct cyclic_repetition {
    std::uint64_t seed = 1;
    int draws = 1;

    static constexpr const char* name = "cyclic_repetition";

    dual_code bind(int workers, int stragglers) const {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "cyclic_repetition: stragglers are at least 0 and fewer than the workers");
        RILL_EXPECTS(workers <= detail::worker_set::capacity, "cyclic_repetition: more than 1024 workers");
        RILL_EXPECTS(draws > 0, "cyclic_repetition: at least one draw");
        std::optional<dual_code> best;
        double least = 0;
        for (int d = 0; d < draws || !best; ++d) {
            const random_key key = random_key{seed}.derive(workers, stragglers, d);
            std::optional<detail::matrix> b = draw(workers, stragglers, key);
            if (!b) continue;
            const std::size_t rank = b->rows - static_cast<std::size_t>(stragglers);
            dual_code code(*b, stragglers, detail::dual_of(*b, rank));
            const double worst = draws == 1 ? 0 : amplification(code).worst;
            if (best && !(worst < least)) continue;
            best = std::move(code);
            least = worst;
        }
        return *std::move(best);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("seed", seed);
        visit("draws", draws);
    }

    friend constexpr bool operator==(cyclic_repetition, cyclic_repetition) = default;

  private:
    /// Draws B, or returns nothing if s columns of H that must be independent are not.
    static std::optional<detail::matrix> draw(int workers, int stragglers, random_key key) {
        const auto n = static_cast<std::size_t>(workers), s = static_cast<std::size_t>(stragglers);
        detail::matrix h{s, n};
        random_sequence random(key);
        for (std::size_t i = 0; i < s; ++i)
            for (std::size_t j = 0; j + 1 < n; ++j) {
                h[i][j] = 2.0 * static_cast<double>(random.uniform()) - 1;
                h[i][n - 1] -= h[i][j];
            }
        detail::matrix b{n, n};
        for (std::size_t i = 0; i < n; ++i) {
            detail::matrix later{s, s};
            std::vector<double> x(s);
            for (std::size_t row = 0; row < s; ++row) {
                for (std::size_t t = 0; t < s; ++t) later[row][t] = h[row][(i + 1 + t) % n];
                x[row] = -h[row][i];
            }
            if (s > 0 && !detail::solve_square(later, x)) return std::nullopt;
            b[i][i] = 1;
            for (std::size_t t = 0; t < s; ++t) b[i][(i + 1 + t) % n] = x[t];
        }
        return b;
    }
};

static_assert(GradientCodePolicy<cyclic_repetition>);

}}}  // namespace rill::RILL_ABI::gradient_code
