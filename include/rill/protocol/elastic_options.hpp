#pragma once

#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/on_difference.hpp>
#include <rill/protocol/quorum.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// Options of an elastic team. All but `catch_up_bytes` must be the same on all ranks. If they differ among the ranks
/// of the first view, these get `mismatch`. A later rank with other options gets no state.
struct elastic_options {
    int least = 1;  ///< with fewer members, `settle` waits for `timeout`, and then throws `no_quorum`
    rill::quorum quorum = rill::quorum::majority;
    /// What is done where the members' states differ at the beginning of a view.
    rill::on_difference on_difference = rill::on_difference::end;
    /// The timeout of the collectives. Also how long a rank waits for the others when a view begins or ends.
    duration timeout = seconds(60);
    /// How long the rank that leads an agreement waits for members that neither answer nor are reported lost by the
    /// transport. It should be longer than the transport takes to tell of silence.
    duration patience = seconds(5);
    duration repeat = milliseconds(50);                  ///< until a message of an agreement is sent again
    std::uint64_t seed = 0;                              ///< of the groups (see `group_options`)
    std::size_t catch_up_bytes = std::size_t{64} << 20;  ///< bound of the latest updates that a member keeps for others
    /// A hash of what all ranks must have alike, for instance the layout of the state. It counts as an option.
    std::uint64_t build = 0;

    static constexpr const char* name = "elastic";

    /// Calls `visit(name, value)` for each option that must be the same on all ranks.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("least", least);
        visit("quorum", static_cast<int>(quorum));
        visit("on_difference", static_cast<int>(on_difference));
        visit("timeout (ns)", timeout.ns);
        visit("patience (ns)", patience.ns);
        visit("repeat (ns)", repeat.ns);
        visit("seed", seed);
        visit("build", build);
    }
    void require_options(rank_t rank) const {
        detail::require_option(least >= 1, "elastic_options: least", least, "at least 1", rank);
        detail::require_option(timeout.ns > 0, "elastic_options: timeout (ns)", timeout.ns, "above 0", rank);
        detail::require_option(patience.ns > 0, "elastic_options: patience (ns)", patience.ns, "above 0", rank);
        detail::require_option(repeat.ns > 0, "elastic_options: repeat (ns)", repeat.ns, "above 0", rank);
    }
    friend constexpr bool operator==(const elastic_options&, const elastic_options&) = default;
};

}}  // namespace rill::RILL_ABI
