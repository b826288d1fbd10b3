#pragma once

#include <rill/concept/participation.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Each round asks a sample drawn anew: `fraction` of all, rounded to the nearest number, and at least one. Each is
/// drawn equally often. Models `Participation`.
///
/// A rank that is not drawn waits until it is, so the timeout must be longer than the rounds that go by meanwhile: of
/// T rounds with n ranks, about log(n T) / log(1 / (1 - fraction)) in a row. Cost: O(n) steps in a round. Source:
/// FedAvg (McMahan et al. 2017), algorithm 1; drawn by selection sampling (Knuth, vol. 2, 3.4.2).
struct sampled {
    double fraction = 0.5;

    static constexpr const char* name = "sampled";

    constexpr int count(int size) const {
        const double share = fraction * size;
        const int whole = static_cast<int>(share);
        return std::clamp(share - whole < 0.5 ? whole : whole + 1, std::min(1, size), size);
    }
    void choose(int size, random_key key, std::vector<int>& places) const {
        places.clear();
        random_sequence random(key);
        const int wanted = count(size);
        for (int place = 0, missing = wanted; missing > 0; ++place)
            if (random.below(static_cast<std::uint64_t>(size - place)) < static_cast<std::uint64_t>(missing)) {
                places.push_back(place);
                --missing;
            }
    }

    void require_options(int, rank_t rank) const {
        detail::require_option(fraction > 0 && fraction <= 1, "straggler::sampled: fraction", fraction,
                               "above 0 and at most 1", rank);
    }
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("fraction", fraction);
    }
    friend constexpr bool operator==(const sampled&, const sampled&) = default;
};

static_assert(Participation<sampled>);

}}}  // namespace rill::RILL_ABI::straggler
