#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// Predicts the expected number of entries that the fold of some contributions has in a range: `model(range,
/// contributors)`, between 0 and the size of the range. Any function of this signature models it.
template <class M>
concept UnionModel = std::copy_constructible<M> && requires(const M& model, segment range, int contributors) {
    { model(range, contributors) } -> std::convertible_to<double>;
};

/// Each rank has each coordinate with probability `density`, independently: k ranks have N (1 - (1 - density)^k) of N
/// coordinates together. Models `UnionModel`. Source: Renggli et al., SparCML, SC 2019, appendix B.
struct uniform_density {
    double density = 0.01;

    double operator()(segment range, int contributors) const {
        RILL_EXPECTS(density >= 0 && density <= 1, "cost::uniform_density: a density is between 0 and 1");
        if (density >= 1) return static_cast<double>(range.size());
        return static_cast<double>(range.size()) * -std::expm1(contributors * std::log1p(-density));
    }
    friend bool operator==(uniform_density, uniform_density) = default;
};

static_assert(UnionModel<uniform_density>);

}}}  // namespace rill::RILL_ABI::cost
