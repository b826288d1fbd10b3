#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// Calls `work()`, a collective of `workers`, so that it takes no number of an operation: the random numbers of later
/// operations do not depend on it.
template <class Group, class Work>
void without_number(Group& workers, Work&& work) {
    const std::uint64_t before = workers.operation_number();
    work();
    workers.resume_at(before);
}

}}}  // namespace rill::RILL_ABI::train::detail
