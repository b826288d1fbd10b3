#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The index of the first requirement that is not met, or -1. Of a sequence of static_asserts on the index only one
/// fails: that of this requirement.
template <class... Bools>
consteval int first_unmet(Bools... met) {
    int index = 0, found = -1;
    ((found = found < 0 && !met ? index : found, ++index), ...);
    return found;
}

}}}  // namespace rill::RILL_ABI::detail
