#pragma once

#include <rill/core/config.hpp>
#include <rill/testing/detail/transport_laws_abort.hpp>
#include <rill/testing/detail/transport_laws_activities.hpp>
#include <rill/testing/detail/transport_laws_computing.hpp>
#include <rill/testing/detail/transport_laws_control.hpp>
#include <rill/testing/detail/transport_laws_deadlines.hpp>
#include <rill/testing/detail/transport_laws_expect.hpp>
#include <rill/testing/detail/transport_laws_messages.hpp>
#include <rill/testing/detail/transport_laws_monitor.hpp>
#include <rill/testing/detail/transport_laws_shared_memory.hpp>
#include <rill/testing/law.hpp>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// Checks a model of `Transport` against the laws of the concept, and against those of `ConcurrentTransport`,
/// `ExpectingTransport`, `ChunkingTransport`, `ComputingTransport`, `MonitoredTransport` and `SharedMemoryTransport` if
/// it models these.
///
/// `runner(ranks, body)` calls `body(net)` on every rank of a fresh group of `ranks` and rethrows what a body throws.
/// `visit(const char* name, const law_outcome&)` is called once per law. No law depends on measured time or on sleeps
/// that let others go first, so that the laws hold in virtual time too. Example:
///
///     for_each_law([](int ranks, auto body) { in_process::run(ranks, body, {.mailbox_bytes = 4096}); },
///                  transport_limits{.mailbox_bytes = 4096},
///                  [](const char* name, const law_outcome& outcome) { INFO(name); CHECK_MESSAGE(outcome.held,
///                  outcome.what); });
template <class Runner, class Visit>
void for_each_law(Runner&& runner, const transport_limits& limits, Visit&& visit) {
    const law_list all(runner, limits, visit);
    message_laws(all);
    expectation_laws(all);
    computing_laws(all);
    deadline_laws(all);
    control_laws(all);
    abort_laws(all);
    activity_laws(all);
    monitor_laws(all);
    shared_memory_laws(all);
}

}}}  // namespace rill::RILL_ABI::testing
