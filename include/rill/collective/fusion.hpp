#pragma once

#include <rill/collective/bucket_plan.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Joins small tensors into buckets, each of which is exchanged by one operation. The tensors of a bucket share the
/// cost of a message, and a bucket can travel while the tensors of the next one are computed.
///
/// Neighbours are joined, from the last to the first, while they take at most `bytes` together; a larger tensor is a
/// bucket of its own. Which tensors share a bucket depends on their sizes and order alone.
struct fusion {
    std::size_t bytes = std::size_t{4} << 20;

    static constexpr const char* name = "fusion";

    /// `sizes`: the number of elements of each tensor, in the order of declaration, the same on all ranks.
    bucket_plan bind(std::span<const std::size_t> sizes, std::size_t element_bytes) const {
        RILL_EXPECTS(element_bytes > 0, "fusion: elements of at least a byte");
        const std::size_t most = bytes / element_bytes;
        bucket_plan plan(sizes);
        std::size_t joined = 0;
        for (std::size_t tensor = sizes.size(); tensor-- > 0;) {
            const bool fits = sizes[tensor] == 0 || (joined <= most && sizes[tensor] <= most - joined);
            if (plan.buckets().empty() || !fits) {
                plan.begin_bucket();
                joined = 0;
            }
            plan.put_before(tensor);
            joined += sizes[tensor];
        }
        return plan;
    }

    /// Calls `visit(name, value)` for each option, for printing and hashing.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("bytes", bytes);
    }

    friend constexpr bool operator==(const fusion&, const fusion&) = default;
};

}}  // namespace rill::RILL_ABI
