#pragma once

#include <rill/core/serial.hpp>

#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// What runs the independent tasks of one rank's work: selection, quantisation, folds. The last argument of a group. It
/// changes how long an operation takes and nothing else: whatever the executor and its threads, results are the same,
/// bit for bit, and so are errors.
///
/// Laws:
/// - `run(n, body)` calls `body(i)` once for each i in [0, n), in any order, on any threads, and returns when all have
///   ended; what they wrote is then visible.
/// - If some throw, what the lowest of them threw is thrown; tasks above it may be left out.
/// - Tasks run with the caller's rounding mode, and do not wait for each other.
/// - `concurrency()` is how many may run at once, at least 1; where it is 1, work is not cut.
/// - Several threads may call `run` of one executor at once: each rank of a process does.
/// - Copies are equal and do the same.
///
/// `rill/testing/executor_laws.hpp` checks them.
template <class E>
concept Executor = std::regular<E> && requires(const E& executor, std::size_t tasks, void (*body)(std::size_t)) {
    { executor.run(tasks, body) } -> std::same_as<void>;
    { executor.concurrency() } -> std::same_as<int>;
    { E::name } -> std::convertible_to<const char*>;
};
static_assert(Executor<serial>);

}}  // namespace rill::RILL_ABI
