// The other one; it includes what stands on rill.hpp first.
// clang-format off
#include <rill/testing.hpp>
#include <rill/rill.hpp>
// clang-format on

#include <atomic>

int ranks_of_two() {
    std::atomic<int> ranks = 0;
    rill::in_process::run(2, [&](auto&) { ++ranks; });
    return ranks;
}
