#pragma once

#include <rill/concept/pairing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Every rank asks any other, first whether it is free. A rank with an exchange of its own says that it is busy. Models
/// `Pairing`.
struct anyone {
    static constexpr const char* name = "anyone";

    static constexpr bool asks(rank_t, rank_t, int) { return true; }
    friend constexpr bool operator==(anyone, anyone) = default;
};

static_assert(Pairing<anyone>);

}}}  // namespace rill::RILL_ABI::topology
