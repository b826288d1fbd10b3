#pragma once

#include <rill/concept/completion.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/types.hpp>

#include <string>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A gather takes the first `count` contributions of children, or all if there are fewer children. `count` may not
/// exceed the largest number of children of any rank. The gathering rank's own contribution is not counted. Models
/// `Completion`.
struct fastest {
    int count = 1;

    static constexpr const char* name = "fastest";

    /// A `count` of 1 is always allowed, even if no rank has children.
    void require_options(int most_children, rank_t rank) const {
        const int most = most_children > 1 ? most_children : 1;
        detail::require_option(1 <= count && count <= most, "straggler::fastest: count", count,
                               "between 1 and " + std::to_string(most) + ", the most children of any rank", rank);
    }
    bool is_complete(const gathering& g) const { return g.missing() == 0 || static_cast<int>(g.in.size()) >= count; }
    static constexpr duration patience(int) { return endless_patience; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("count", count);
    }
    friend constexpr bool operator==(fastest, fastest) = default;
};

static_assert(Completion<fastest>);

}}}  // namespace rill::RILL_ABI::straggler
