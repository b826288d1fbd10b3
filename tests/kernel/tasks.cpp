#include <rill/core/serial.hpp>
#include <rill/kernel/tasks.hpp>

#include "../support/threads.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using rill::segment;
using rill::kernel::run_tasks;
using rill::kernel::tasks;

TEST_CASE("tasks: consecutive, with borders at multiples of the unit, determined by the size alone") {
    for (const std::size_t n : {0U, 1U, 255U, 65'536U, 65'537U, 1'000'000U, 100'000'000U})
        for (const std::size_t unit : {1U, 7U, 256U, 40'000U}) {
            const tasks all(n, unit);
            CAPTURE(n);
            CAPTURE(unit);
            CHECK((all.count() <= tasks::most && (all.count() > 0) == (n > 0)));
            std::size_t end = 0;
            for (std::size_t t = 0; t < all.count(); ++t) {
                CHECK(all[t].begin == end);
                CHECK((all[t].size() > 0 && (all[t].end % unit == 0 || all[t].end == n)));
                end = all[t].end;
            }
            CHECK(end == n);
        }
}

TEST_CASE("tasks: little work is one task, much work is a few tasks") {
    CHECK(tasks(40'000).count() == 1);
    CHECK(tasks(70'000).count() == 2);
    CHECK(tasks(16'000'000).count() == tasks::most);
}

TEST_CASE("tasks: each runs once, and gets its number if its function takes one") {
    std::vector<int> seen(200'000);
    const tasks all(seen.size());
    run_tasks(support::threads{}, all, [&](segment part, std::size_t task) {
        for (std::size_t i = part.begin; i < part.end; ++i) seen[i] += static_cast<int>(task) + 1;
    });
    bool right = true;
    for (std::size_t t = 0; t < all.count(); ++t)
        for (std::size_t i = all[t].begin; i < all[t].end; ++i) right = right && seen[i] == static_cast<int>(t) + 1;
    CHECK(right);
}

TEST_CASE("tasks: an executor of one thread gets the work as one task") {
    CHECK(rill::kernel::tasks_for(rill::serial{}, 1'000'000).count() == 1);
    CHECK(rill::kernel::tasks_for(rill::serial{}, 1'000'000)[0] == segment{0, 1'000'000});
    CHECK(rill::kernel::tasks_for(rill::serial{}, 0).count() == 0);
    CHECK(rill::kernel::tasks_for(support::threads{1}, 1'000'000).count() == 1);
    CHECK(rill::kernel::tasks_for(support::threads{2}, 1'000'000).count() == 30);
}
