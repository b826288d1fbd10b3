#pragma once

#include <rill/concept/completion.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A gather does not wait for the last `stragglers` contributions, whichever they are. Models `Completion`.
struct tolerate {
    int stragglers = 0;

    static constexpr const char* name = "tolerate";

    void require_options(int, rank_t rank) const {
        detail::require_option(stragglers >= 0, "straggler::tolerate: stragglers", stragglers, "at least 0", rank);
    }
    bool is_complete(const gathering& g) const { return g.missing() == 0 || g.missing() <= stragglers; }
    static constexpr duration patience(int) { return endless_patience; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("stragglers", stragglers);
    }
    friend constexpr bool operator==(tolerate, tolerate) = default;
};

static_assert(Completion<tolerate>);

}}}  // namespace rill::RILL_ABI::straggler
