#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/gradient_code/group_code.hpp>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A code of g = ⌊n/(s+1)⌋ partitions, one for each of g groups of nearly equal size. Models `GradientCodePolicy`. It
/// exists for any n > s.
///
/// Load 1/g of the data, which is more than (s+1)/n if s+1 does not divide n. Errors are not amplified.
struct repetition_groups {
    static constexpr const char* name = "repetition_groups";

    group_code bind(int workers, int stragglers) const {
        RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                     "repetition_groups: stragglers are at least 0 and fewer than the workers");
        return {workers, stragglers, workers / (stragglers + 1), 1};
    }

    template <class Visit>
    constexpr void visit_options(Visit&&) const {}

    friend constexpr bool operator==(repetition_groups, repetition_groups) = default;
};

static_assert(GradientCodePolicy<repetition_groups>);

}}}  // namespace rill::RILL_ABI::gradient_code
