#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Whether two notices report the same failure, perhaps in ranks and contexts of different groups. A run uses it to
/// find the culprit's rank in the run when an error leaves the scope of a subgroup.
inline bool same_failure(const abort_notice& a, const abort_notice& b) {
    return a.operation == b.operation && a.kind == b.kind && a.reason == b.reason;
}

}}}  // namespace rill::RILL_ABI::detail
