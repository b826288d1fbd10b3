#pragma once

#include <rill/collective/all_reduce.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// What becomes of members whose state is not that of the majority.
enum class on_difference : unsigned char {
    end,  ///< training ends on all members
    mend  ///< they get the state of the majority
};

/// What the members of a view hold.
struct state_comparison {
    std::vector<rank_t> odd{};             ///< whose state is not that of more than half of the members
    std::vector<double> residual_norms{};  ///< of each member, in the order of the view's members
};

/// Compares the members' states by their checksums, at the beginning of a view. Collective on a group of the view;
/// ranks are those that the view names. `residual_norm`: this rank's, for the case that it dies; see `residual_norm`.
///
/// Returns who differs from the majority, if they are to be mended. Errors, on all members alike: `mismatch`, which
/// names who differs, if training is to end; and, in any case, if no state is that of more than half of the members.
/// Otherwise as in `all_reduce`. Cost: an all-reduce of two numbers per member.
template <class Group>
state_comparison compare_states(Group& workers, const view& crew, std::uint64_t checksum, double residual_norm = 0,
                                on_difference how = on_difference::end) {
    const auto size = static_cast<std::size_t>(workers.size()), rank = static_cast<std::size_t>(workers.rank());
    RILL_EXPECTS(crew.members.size() == size, "compare_states: a group of the view");
    std::vector<std::int64_t> own(2 * size), told(2 * size);
    own[rank] = std::bit_cast<std::int64_t>(checksum);
    own[size + rank] = std::bit_cast<std::int64_t>(residual_norm);
    all_reduce(workers, own, told);

    const std::span<const std::int64_t> sums = std::span<const std::int64_t>(told).first(size);
    const auto votes = [&](std::int64_t sum) { return 2 * std::count(sums.begin(), sums.end(), sum); };
    const auto majority = std::find_if(
        sums.begin(), sums.end(), [&](std::int64_t sum) { return votes(sum) > static_cast<std::ptrdiff_t>(size); });
    state_comparison made;
    for (std::size_t i = 0; i < size; ++i) {
        if (majority == sums.end() || sums[i] != *majority) made.odd.push_back(crew.members[i]);
        made.residual_norms.push_back(std::bit_cast<double>(told[size + i]));
    }
    if (made.odd.empty() || (majority != sums.end() && how == on_difference::mend)) return made;

    std::string reason = text_of({"in ", crew.text(), ": "});
    if (majority == sums.end()) reason += "no state is that of more than half of the members";
    if (majority != sums.end())
        for (const rank_t odd : made.odd)
            reason += text_of({odd == made.odd.front() ? "the state of rank " : ", of rank ", odd});
    if (majority != sums.end()) reason += " is not that of the others";
    throw mismatch({.context = workers.context(),
                    .kind = failure::mismatch,
                    .culprit = majority == sums.end() ? no_rank : made.odd.front(),
                    .reason = std::move(reason)});
}

}}  // namespace rill::RILL_ABI
