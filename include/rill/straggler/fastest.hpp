#pragma once

#include <rill/concept/completion.hpp>
#include <rill/core/config.hpp>

namespace rill::inline RILL_ABI::straggler {

/// A gather takes the first `count` contributions, or all where there are fewer. What the gathering rank contributes
/// itself comes in addition.
struct fastest {
    int count = 1;

    static constexpr const char* name = "fastest";

    bool is_complete(const gathering& g) const { return g.missing() == 0 || static_cast<int>(g.in.size()) >= count; }
    static constexpr duration patience(int) { return endless_patience; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("count", count);
    }
    friend constexpr bool operator==(fastest, fastest) = default;
};

static_assert(Completion<fastest>);

}  // namespace rill::inline RILL_ABI::straggler
