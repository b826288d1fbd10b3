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

/// Ranks whose supports overlap more than those of `uniform_density`: each rank has each coordinate with probability
/// `density`, and all of them lie within a share of the coordinates that is the same for all ranks, where they are
/// independent. Models `UnionModel`.
struct shared_support {
    double density = 0.01;
    double share = 1;  ///< of the coordinates, in [density, 1]

    /// The support by which `ranks` ranks together have `growth` times as many entries as one, as was measured.
    static shared_support of(double density, int ranks, double growth) {
        RILL_EXPECTS(growth >= 1 && growth <= ranks,
                     "cost::shared_support: the union of P ranks has 1 to P times as "
                     "many entries as one of them");
        double least = density, most = 1;
        for (int i = 0; i < 60; ++i) {
            const double middle = (least + most) / 2;
            (shared_support{density, middle}({0, 1}, ranks) < growth * density ? least : most) = middle;
        }
        return {density, most};
    }

    double operator()(segment range, int contributors) const {
        RILL_EXPECTS(0 <= density && density <= share && share <= 1,
                     "cost::shared_support: a density is at least 0, and a share between it and 1");
        if (share == 0) return 0;
        return share * uniform_density{density / share}(range, contributors);
    }
    friend bool operator==(shared_support, shared_support) = default;
};

static_assert(UnionModel<uniform_density> && UnionModel<shared_support>);

}}}  // namespace rill::RILL_ABI::cost
