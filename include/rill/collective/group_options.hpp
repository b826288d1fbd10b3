#pragma once

#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <string_view>

namespace rill { inline namespace RILL_ABI {

/// Options of a group. All but `monitors` must be the same on all its ranks, which the handshake checks.
struct group_options {
    /// How long an operation may take after this rank has entered it. Finding the culprit may take three eighths
    /// of it more. Must be above 0, else making the group fails.
    duration timeout = seconds(60);
    std::uint64_t seed = 0;  ///< for the random numbers that collectives use
    /// Tells the group from others on its transport; those of one name, by the order in which they are made.
    std::string_view name = "group";

    /// Whether an operation of this rank fails as soon as a rank that it waits for has ended or is silent, and not at
    /// its timeout. On a `MonitoredTransport`; without effect on others. With a topology that has detours, a
    /// silent rank is waited for until all ranks that this one hears have said that they do not hear it either.
    bool monitors = false;

    void require_options(rank_t rank) const {
        detail::require_option(timeout.ns > 0, "group_options: timeout (ns)", timeout.ns, "above 0", rank);
    }
    friend constexpr bool operator==(const group_options&, const group_options&) = default;
};

}}  // namespace rill::RILL_ABI
