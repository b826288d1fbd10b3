#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Cuts [0, n) into at most `most` nearly equal tasks, with borders at multiples of `unit`.
///
/// The cut does not depend on the number of threads. A task has about `smallest` entries at least, so that handing it
/// to another thread pays.
class tasks {
  public:
    static constexpr std::size_t most = 64;
    static constexpr std::size_t least = 32768;

    constexpr explicit tasks(std::size_t n, std::size_t unit = 1, std::size_t smallest = least)
        : n_(n),
          unit_(unit),
          units_(n / unit + (n % unit != 0 ? 1U : 0U)),
          count_(std::clamp<std::size_t>(std::min(n / smallest, units_), n == 0 ? 0 : 1, most)) {}

    /// [0, n) as one task.
    static constexpr tasks whole(std::size_t n) { return tasks(n, n, 1, n == 0 ? 0 : 1); }

    constexpr std::size_t total() const { return n_; }
    constexpr std::size_t count() const { return count_; }
    constexpr segment operator[](std::size_t i) const {
        if (count_ == 1) return {0, n_};
        const segment s = split(units_, count_, i);
        return {s.begin * unit_, std::min(s.end * unit_, n_)};
    }

  private:
    constexpr tasks(std::size_t n, std::size_t unit, std::size_t units, std::size_t count)
        : n_(n), unit_(unit), units_(units), count_(count) {}

    std::size_t n_;
    std::size_t unit_;
    std::size_t units_;
    std::size_t count_;
};

/// Whether an executor's work can be more than one task. Where it cannot, code for several tasks is not compiled.
template <Executor Exec>
inline constexpr bool may_divide = !std::same_as<Exec, serial>;

/// Returns the tasks of work on [0, n): a single one if the executor runs one task at a time.
template <Executor Exec>
constexpr tasks tasks_for(const Exec& executor, std::size_t n, std::size_t unit = 1,
                          std::size_t smallest = tasks::least) {
    return executor.concurrency() == 1 ? tasks::whole(n) : tasks(n, unit, smallest);
}

/// Calls `body(segment)`, or `body(segment, number)`, for every task.
template <Executor Exec, class Body>
void run_tasks([[maybe_unused]] const Exec& executor, const tasks& all, Body&& body) {
    const auto one = [&](std::size_t i) {
        if constexpr (requires { body(segment{}, i); })
            body(all[i], i);
        else
            body(all[i]);
    };
    if constexpr (may_divide<Exec>) {
        if (all.count() == 1) return one(0);
        executor.run(all.count(), one);
    } else {
        for (std::size_t i = 0; i < all.count(); ++i) one(i);
    }
}

/// A number per task.
using task_counts = std::array<std::size_t, tasks::most>;

}}}  // namespace rill::RILL_ABI::kernel
