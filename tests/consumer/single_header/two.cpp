// The second of two translation units; it includes the files that depend on rill.hpp before rill.hpp.
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
