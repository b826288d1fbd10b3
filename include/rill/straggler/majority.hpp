#pragma once

#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/straggler/two_choices.hpp>

#include <span>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Each round is started by one rank that is drawn at random, once it is ready: on average half of the ranks are ready
/// before it. Models `Trigger`. Source: eager-SGD (Li et al. 2020), majority collectives.
struct majority {
    static constexpr const char* name = "majority";

    static constexpr bool asks(rank_t rank, int size, random_key key) {
        return two_choices{.probes = 1}.asks(rank, size, key);
    }
    static constexpr bool starts(std::span<const rank_t> ready, int size, random_key key) {
        return two_choices{.probes = 1}.starts(ready, size, key);
    }
    friend constexpr bool operator==(majority, majority) = default;
};

static_assert(Trigger<majority>);

}}}  // namespace rill::RILL_ABI::straggler
