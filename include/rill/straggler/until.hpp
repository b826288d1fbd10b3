#pragma once

#include <rill/concept/completion.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <string>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A gather takes what has come when its time is up, but continues to wait until it has at least `at_least`
/// contributions. In a tree each level has its own time: a rank waits `after` for every edge between it and its deepest
/// leaf. Where that is longer than the group's timeout, a rank that does not come ends the rounds by a `timeout`.
/// Models `Completion`.
struct until {
    duration after{};
    int at_least = 0;

    static constexpr const char* name = "until";

    void require_options(int most_children, rank_t rank) const {
        detail::require_option(after.ns >= 0, "straggler::until: after (ns)", after.ns, "at least 0", rank);
        detail::require_option(0 <= at_least && at_least <= most_children, "straggler::until: at_least", at_least,
                               "between 0 and " + std::to_string(most_children) + ", the most children of any rank",
                               rank);
    }
    bool is_complete(const gathering& g) const {
        return g.missing() == 0 || (g.time_is_up && static_cast<int>(g.in.size()) >= at_least);
    }
    constexpr duration patience(int height) const { return after * height; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("after", after.ns);
        visit("at_least", at_least);
    }
    friend constexpr bool operator==(const until&, const until&) = default;
};

static_assert(Completion<until>);

}}}  // namespace rill::RILL_ABI::straggler
