#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/serial.hpp>

#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// Runs the independent tasks of one rank's work: selection, quantisation, folds. It is the last argument of a group.
/// An executor changes only how long an operation takes: results are the same bit for bit, and errors are the same,
/// whatever the executor and its threads.
///
/// Laws:
/// - `run(n, body)` calls `body(i)` once for each i in [0, n), in any order, on any threads. It returns when all calls
///   have ended; what they wrote is then visible.
/// - If tasks throw, `run` throws the exception of the task with the lowest number; tasks with higher numbers may be
///   left out.
/// - Tasks run with the caller's rounding mode, and do not wait for each other.
/// - `concurrency()` is how many tasks may run at once, at least 1. If it is 1, callers do not divide their work.
/// - Several threads may call `run` of one executor at once, as the ranks of one process do.
/// - Copies are equal and behave the same.
///
/// `rill/testing/executor_laws.hpp` checks them.
template <class E>
concept Executor = Regular<E> && requires(const E& executor, std::size_t tasks, void (*body)(std::size_t)) {
    { executor.run(tasks, body) } -> std::same_as<void>;
    { executor.concurrency() } -> std::same_as<int>;
    { E::name } -> std::convertible_to<const char*>;
};
static_assert(Executor<serial>);

}}  // namespace rill::RILL_ABI
