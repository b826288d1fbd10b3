#pragma once

#include <rill/concept/completion.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A gather waits for every contribution. Models `Completion`.
struct wait_all {
    static constexpr const char* name = "wait_all";

    bool is_complete(const gathering& g) const { return g.missing() == 0; }
    static constexpr duration patience(int) { return endless_patience; }
    friend constexpr bool operator==(wait_all, wait_all) = default;
};

static_assert(Completion<wait_all>);

}}}  // namespace rill::RILL_ABI::straggler
