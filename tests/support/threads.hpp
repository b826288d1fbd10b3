// An executor for tests: its threads take tasks from the last to the first.
#pragma once

#include <rill/concept/executor.hpp>

#include <atomic>
#include <cfenv>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace support {

struct threads {
    int count = 4;

    static constexpr const char* name = "threads";
    int concurrency() const { return count; }

    template <class Body>
    void run(std::size_t tasks, Body&& body) const {
        std::vector<std::exception_ptr> failures(tasks);
        std::atomic<std::size_t> left{tasks};
        const int rounding = std::fegetround();
        const auto work = [&] {
            std::fesetround(rounding);
            for (std::size_t i = left.fetch_sub(1); i != 0 && i <= tasks; i = left.fetch_sub(1)) try {
                    body(i - 1);
                } catch (...) {
                    failures[i - 1] = std::current_exception();
                }
        };
        std::vector<std::thread> others;
        for (int i = 1; i < count; ++i) others.emplace_back(work);
        work();
        for (std::thread& each : others) each.join();
        for (const auto& failure : failures)
            if (failure) std::rethrow_exception(failure);
    }
    friend bool operator==(threads, threads) = default;
};
static_assert(rill::Executor<threads>);

}  // namespace support
