#pragma once

#include <rill/collective/all_reduce.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/on_difference.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// What the members of a view hold.
struct state_comparison {
    /// Whose state is not that of more than half of the members; all of them, if no state is.
    std::vector<rank_t> odd{};
    std::vector<double> residual_norms{};  ///< of each member, in the order of the view's members

    bool has_majority() const { return odd.size() < residual_norms.size(); }
};

namespace detail {

/// As `compare_states`, without errors of its own.
template <class Group>
state_comparison gather_states(Group& workers, const view& crew, std::uint64_t checksum, double residual_norm) {
    const auto size = static_cast<std::size_t>(workers.size()), rank = static_cast<std::size_t>(workers.rank());
    RILL_EXPECTS(crew.members.size() == size, "compare_states: a group of the view");
    std::vector<std::int64_t> own(2 * size), told(2 * size);
    own[rank] = std::bit_cast<std::int64_t>(checksum);
    own[size + rank] = std::bit_cast<std::int64_t>(residual_norm);
    all_reduce(workers, own, told);

    const std::span<const std::int64_t> sums = std::span<const std::int64_t>(told).first(size);
    const auto votes = [&](std::int64_t sum) { return 2 * std::count(sums.begin(), sums.end(), sum); };
    state_comparison made;
    for (std::size_t i = 0; i < size; ++i) {
        if (votes(sums[i]) <= static_cast<std::ptrdiff_t>(size)) made.odd.push_back(crew.members[i]);
        made.residual_norms.push_back(std::bit_cast<double>(told[size + i]));
    }
    return made;
}

[[noreturn, gnu::cold]] inline void throw_states_differ(const view& crew, const state_comparison& found,
                                                        std::uint64_t context) {
    std::string reason = text_of({"in ", crew.text(), ": "});
    if (found.has_majority()) {
        for (const rank_t odd : found.odd)
            reason += text_of({odd == found.odd.front() ? "the state of rank " : ", of rank ", odd});
        reason += " is not that of the others";
    } else {
        reason += "no state is that of more than half of the members";
    }
    throw mismatch({.context = context,
                    .kind = failure::mismatch,
                    .culprit = found.has_majority() ? found.odd.front() : no_rank,
                    .reason = std::move(reason)});
}

}  // namespace detail

/// Compares the members' states by their checksums, at the beginning of a view. Collective on a group of the view;
/// ranks are those that the view names. An elastic team does this by itself. `residual_norm` is told to all, so that
/// they know what is lost if this rank dies; see the function `residual_norm`.
///
/// Returns which members differ from the majority, if `how` is `mend`. Errors, on all members alike: `mismatch`, which
/// names the members that differ, if `how` is `end`; and, in any case, if no state is that of more than half of the
/// members. Otherwise as in `all_reduce`. Cost: an all-reduce of two numbers per member.
template <class Group>
state_comparison compare_states(Group& workers, const view& crew, std::uint64_t checksum, double residual_norm = 0,
                                on_difference how = on_difference::end) {
    state_comparison found = detail::gather_states(workers, crew, checksum, residual_norm);
    const bool is_right = found.odd.empty() || (found.has_majority() && how == on_difference::mend);
    if (!is_right) detail::throw_states_differ(crew, found, workers.context());
    return found;
}

}}  // namespace rill::RILL_ABI
