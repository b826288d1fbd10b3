#pragma once

#include <rill/concept/executor.hpp>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/spin_mutex.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <cstddef>
#include <exception>

namespace rill { inline namespace RILL_ABI { namespace adapt {

namespace detail {

/// Keeps, of all exceptions thrown by tasks, that of the lowest task.
class lowest_failure {
  public:
    void note(std::size_t task) {
        const ::tbb::spin_mutex::scoped_lock lock(mutex_);
        if (what_ != nullptr && task_ < task) return;
        task_ = task;
        what_ = std::current_exception();
    }
    void rethrow() {
        if (what_ != nullptr) std::rethrow_exception(what_);
    }

  private:
    ::tbb::spin_mutex mutex_;
    std::size_t task_ = 0;
    std::exception_ptr what_;
};

}  // namespace detail

/// An executor on the threads of oneTBB: those of the caller's arena, or of a given arena, which must outlive it.
/// Models `Executor`.
///
///     rill::group workers{net, rill::topology::ring{}, {}, rill::adapt::tbb_executor{}};
///
/// The ranks of one process share oneTBB's threads, of which there are never more than cores. While a thread waits for
/// the tasks of an operation, it runs no other tasks: a user's task that calls rill or waits for another rank never
/// runs inside a fold.
class tbb_executor {
  public:
    static constexpr const char* name = "tbb";

    tbb_executor() = default;
    explicit tbb_executor(::tbb::task_arena& arena) : arena_(&arena) {}

    int concurrency() const {
        return arena_ == nullptr ? ::tbb::this_task_arena::max_concurrency() : arena_->max_concurrency();
    }

    template <class Body>
    void run(std::size_t tasks, Body&& body) const {
        // Isolated: the cancellation of an outer context would skip tasks.
        ::tbb::task_group_context context(
            ::tbb::task_group_context::isolated,
            ::tbb::task_group_context::default_traits | ::tbb::task_group_context::fp_settings);
        detail::lowest_failure failure;
        const auto some = [&](const ::tbb::blocked_range<std::size_t>& range) {
            for (std::size_t i = range.begin(); i != range.end(); ++i) try {
                    body(i);
                } catch (...) {
                    failure.note(i);
                }
        };
        const auto all = [&] {
            ::tbb::this_task_arena::isolate([&] {
                ::tbb::parallel_for(::tbb::blocked_range<std::size_t>(0, tasks), some, ::tbb::simple_partitioner(),
                                    context);
            });
        };
        if (arena_ == nullptr)
            all();
        else
            arena_->execute(all);
        failure.rethrow();
    }

    friend bool operator==(tbb_executor, tbb_executor) = default;

  private:
    ::tbb::task_arena* arena_ = nullptr;
};
static_assert(Executor<tbb_executor>);

}}}  // namespace rill::RILL_ABI::adapt
