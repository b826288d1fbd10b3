#pragma once

#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Each round asks `probes` ranks that are drawn at random; the first of them that is ready starts it. Models
/// `Trigger`.
///
/// With one probe it is `majority`, with as many as there are ranks `solo`. Where fewer ranks take part, all are asked.
/// Cost: `asks` looks at every rank's random number. Source: the power of two choices (Mitzenmacher 2001), as RNA uses
/// it (Yang et al. 2020, section 3).
struct two_choices {
    int probes = 2;

    static constexpr const char* name = "two_choices";

    constexpr bool asks(rank_t rank, int size, random_key key) const {
        const std::uint64_t own = draw(rank, key);
        int before = 0;  // the ranks whose numbers are smaller
        for (rank_t other = 0; other < size && before < probes; ++other)
            if (const std::uint64_t theirs = draw(other, key); theirs < own || (theirs == own && other < rank))
                ++before;
        return before < probes;
    }
    constexpr bool starts(std::span<const rank_t> ready, int size, random_key key) const {
        return std::any_of(ready.begin(), ready.end(), [&](rank_t rank) { return asks(rank, size, key); });
    }

    void require_options(int size, rank_t rank) const {
        rill::detail::require_option(probes >= 1 && probes <= size, "straggler::two_choices: probes", probes,
                                     "between 1 and the number of ranks", rank);
    }
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("probes", probes);
    }
    friend constexpr bool operator==(const two_choices&, const two_choices&) = default;

  private:
    static constexpr std::uint64_t draw(rank_t rank, random_key key) { return key.derive(rank).value; }
};

static_assert(Trigger<two_choices>);

}}}  // namespace rill::RILL_ABI::straggler
