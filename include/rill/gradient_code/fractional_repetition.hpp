#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/gradient_code/group_code.hpp>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A code of n partitions: each group of s+1 neighbours holds the same s+1 partitions, with coefficients 1. Models
/// `GradientCodePolicy`. s+1 must divide n.
///
/// Load (s+1)/n of the data, which is the least possible; errors are not amplified. It is the best code where it
/// exists.
///
/// Source: Tandon et al., Gradient Coding (ICML 2017), section 3.1.
struct fractional_repetition {
    static constexpr const char* name = "fractional_repetition";

    static constexpr bool exists(int workers, int stragglers) {
        return 0 <= stragglers && stragglers < workers && workers % (stragglers + 1) == 0;
    }
    group_code bind(int workers, int stragglers) const {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "fractional_repetition: stragglers are at least 0 and fewer than the workers");
        RILL_EXPECTS(exists(workers, stragglers),
                     "fractional_repetition: stragglers + 1 does not divide the workers; take repetition_groups");
        return {workers, stragglers, workers / (stragglers + 1), stragglers + 1};
    }

    template <class Visit>
    constexpr void visit_options(Visit&&) const {}

    friend constexpr bool operator==(fractional_repetition, fractional_repetition) = default;
};

static_assert(GradientCodePolicy<fractional_repetition>);

}}}  // namespace rill::RILL_ABI::gradient_code
