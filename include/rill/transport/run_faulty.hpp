#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/fault_scene.hpp>
#include <rill/transport/faulty.hpp>

namespace rill { inline namespace RILL_ABI {

/// Calls `body(faulty&)` as this rank of `inner`. When the plan kills the rank, waits until the plan restarts it and
/// calls `body` again; returns if the plan does not restart it. A rank that the plan starts later waits for that.
/// Example:
///
///     fault_scene scene(ranks, parse_fault_plan("kill rank 2 after 3"));
///     in_process::run(ranks, [&](auto& inner) { run_faulty(inner, scene, body); });
template <Transport Net, class Body>
void run_faulty(Net& inner, fault_scene& scene, Body&& body) {
    const time_point start = inner.now();
    if (const fault* const later = scene.start_of(inner.rank())) inner.sleep_until(start + later->begins);
    faulty<Net> net(inner, scene, start);
    while (true) {
        try {
            body(net);
            return;
        } catch (const rank_killed&) {
            const fault* const again = scene.restart_of(inner.rank());
            if (again == nullptr) return;
            inner.sleep_until(inner.now() + again->begins);
            scene.revive(inner.rank(), inner.now() - start);
        }
    }
}

}}  // namespace rill::RILL_ABI
