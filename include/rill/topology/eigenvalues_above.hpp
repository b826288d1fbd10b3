#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Whether all eigenvalues of a symmetric mixing of `size` ranks are above `least`: whether W - least · I has a
/// Cholesky decomposition, whose pivots are above 1e-12. For a mixing that keeps its neighbours.
///
/// Cost: per rank the square of the distance to its lowest neighbour, at most; so little on rings and grids.
template <Mixing M>
bool eigenvalues_above(const M& mixing, int size, double least) {
    static_assert(
        M::is_symmetric && M::keeps_neighbours,
        "rill::topology::eigenvalues_above: the mixing is not the same symmetric matrix in all rounds; use one "
        "that says is_symmetric and keeps_neighbours");
    auto bound = mixing.bind(size, {});
    const auto ranks = static_cast<std::size_t>(size);
    std::vector<std::vector<double>> rows(ranks);  // of the lower triangle, from the first entry that is not 0
    std::vector<std::size_t> first(ranks);
    mixing_row row;
    for (std::size_t i = 0; i < ranks; ++i) {
        bound.fill(0, static_cast<rank_t>(i), row);
        first[i] = row.senders.empty() ? i : std::min(i, static_cast<std::size_t>(row.senders.front().peer));
        rows[i].assign(i - first[i] + 1, 0.0);
        for (const mixing_end& from : row.senders)
            if (const auto j = static_cast<std::size_t>(from.peer); j < i) rows[i][j - first[i]] = from.weight;
        rows[i].back() = row.own_weight - least;
        for (std::size_t j = first[i]; j <= i; ++j) {
            double rest = rows[i][j - first[i]];
            for (std::size_t k = std::max(first[i], first[j]); k < j; ++k)
                rest -= rows[i][k - first[i]] * rows[j][k - first[j]];
            if (j == i && !(rest > 1e-12)) return false;
            rows[i][j - first[i]] = j < i ? rest / rows[j].back() : std::sqrt(rest);
        }
    }
    return true;
}

}}}  // namespace rill::RILL_ABI::topology
