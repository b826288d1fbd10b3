#pragma once

#include <rill/concept/executor.hpp>
#include <rill/testing/law.hpp>
#include <rill/transport/in_process.hpp>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr std::size_t law_task_counts[] = {0, 1, 2, 3, 64, 1000};

template <Executor Exec>
void law_each_runs_once(const Exec& executor) {
    for (const std::size_t tasks : law_task_counts) {
        std::vector<std::atomic<int>> calls(tasks);
        std::vector<std::size_t> written(tasks);  // not atomic: the return of `run` must make them visible
        executor.run(tasks, [&](std::size_t i) {
            ++calls.at(i);
            written[i] = i + 1;
        });
        for (std::size_t i = 0; i < tasks; ++i) {
            expect_equal(calls[i].load(), 1, "calls of a task");
            expect_equal(written[i], i + 1, "what a task wrote");
        }
    }
}

/// Some tasks throw their own number. All tasks below the lowest of these must have run.
template <Executor Exec>
void law_lowest_failure(const Exec& executor) {
    for (const std::size_t first : {0U, 37U, 998U}) {
        std::vector<std::atomic<int>> calls(1000);
        std::size_t thrown = calls.size();
        try {
            executor.run(calls.size(), [&](std::size_t i) {
                ++calls[i];
                if (i >= first && (i - first) % 7 == 0) throw i;
            });
        } catch (std::size_t task) {
            thrown = task;
        }
        expect_equal(thrown, first, "the task whose exception is thrown");
        for (std::size_t i = 0; i < first; ++i) expect_equal(calls[i].load(), 1, "calls of a task below a failed one");
        for (const auto& each : calls) expect(each <= 1, "a task is called again because another has failed");
    }
    law_each_runs_once(executor);
}

template <Executor Exec>
void law_rounding(const Exec& executor) {
    struct restore {
        int mode = std::fegetround();
        ~restore() { std::fesetround(mode); }
    } const on_return;
    for (const int mode : {FE_UPWARD, FE_TONEAREST}) {
        std::fesetround(mode);
        std::atomic<int> others = 0;
        executor.run(64, [&](std::size_t) { others += std::fegetround() == mode ? 0 : 1; });
        expect_equal(others.load(), 0, "tasks with another rounding mode than the caller's");
    }
}

}  // namespace detail

/// Checks an executor against the laws of the concept; one of them lets four threads share it.
///
/// `visit(const char* name, const law_outcome&)` is called once per law.
template <Executor Exec, class Visit>
void for_each_executor_law(const Exec& executor, Visit&& visit) {
    const auto law = [&](const char* name, auto check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = std::string(Exec::name) + ": " + failed.what()};
        }
        visit(name, std::as_const(outcome));
    };
    law("each task runs once and is over", [&] { detail::law_each_runs_once(executor); });
    law("the lowest failure is thrown", [&] { detail::law_lowest_failure(executor); });
    law("tasks round as their caller does", [&] { detail::law_rounding(executor); });
    law("something may run", [&] { expect(executor.concurrency() >= 1, "concurrency() is below 1"); });
    law("a copy is equal and does the same", [&] {
        const Exec copy = executor;
        expect(copy == executor, "a copy is not equal");
        expect_equal(copy.concurrency(), executor.concurrency(), "concurrency of a copy");
        detail::law_each_runs_once(copy);
    });
    law("threads may share it", [&] {
        in_process::run(4, [&](auto&) {
            for (int turn = 0; turn < 20; ++turn) detail::law_each_runs_once(executor);
        });
    });
}

}}}  // namespace rill::RILL_ABI::testing
