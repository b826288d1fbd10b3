// How the ranks of a job come together.
#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/tcp_joining.hpp>
#include <rill/transport/detail/tcp_meeting_guest.hpp>
#include <rill/transport/detail/tcp_meeting_host.hpp>
#include <rill/transport/detail/tcp_mesh.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_roster.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Meets the other ranks of the job, or joins them where they have met.
inline mesh meet(const options& chosen) {
    if (chosen.size() == 1) return mesh_of(chosen);
    mesh made = chosen.comes_late() ? joining(chosen).run()
                : chosen.rank == 0  ? meeting_host(chosen).run()
                                    : meeting_guest(chosen).run();
    made.roster.resize(static_cast<std::size_t>(made.ranks));
    // Who joins may be on another host, and must not change what all have alike.
    if (made.takes_newcomers) return made;
    for (const roster_entry& each : made.roster)
        if (each.rank != made.rank && each.host == made.at(made.rank).host) ++made.neighbours;
    return made;
}

}}}  // namespace rill::RILL_ABI::tcp::detail
