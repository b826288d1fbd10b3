#pragma once

#include <rill/concept/participation.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Each round asks all. Models `Participation`.
struct everyone {
    static constexpr const char* name = "everyone";

    static void choose(int size, random_key, std::vector<int>& places) {
        places.resize(static_cast<std::size_t>(size));
        std::iota(places.begin(), places.end(), 0);
    }
    friend constexpr bool operator==(everyone, everyone) = default;
};

static_assert(Participation<everyone>);

}}}  // namespace rill::RILL_ABI::straggler
