#pragma once

#include <rill/testing/gradient_code_laws.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace coding_test {

template <class Code>
void check_laws(const Code& code, int most = 200) {
    rill::testing::for_each_gradient_code_law(
        code,
        [](const char* name, const rill::testing::law_outcome& outcome) {
            INFO(name);
            INFO(outcome.what);
            CHECK(outcome.held);
        },
        most);
}

/// Checks that each partition is held by `wanted` workers.
template <class Code>
bool each_held_by(const Code& code, int wanted) {
    std::vector<int> held(static_cast<std::size_t>(code.partitions()));
    for (int worker = 0; worker < code.workers(); ++worker)
        for (const int partition : code.partitions_of(worker)) ++held[static_cast<std::size_t>(partition)];
    return std::ranges::all_of(held, [=](int count) { return count == wanted; });
}

}  // namespace coding_test
