#include <rill/core/arena.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace rill;

namespace {
constexpr std::size_t sizes[] = {0, 1, 64, 65, 40000, 30000, 100, 200000, 3, 65536, 65535};

std::vector<byte_span> take_all(arena& memory) {
    std::vector<byte_span> taken;
    for (std::size_t size : sizes) taken.push_back(memory.take(size));
    return taken;
}
}  // namespace

TEST_CASE("memory of an arena stays where it is, on cache lines of its own") {
    arena memory;
    const auto taken = take_all(memory);
    for (std::size_t i = 0; i < taken.size(); ++i) {
        CHECK(taken[i].size() == sizes[i]);
        CHECK(reinterpret_cast<std::uintptr_t>(taken[i].data()) % 64 == 0);
        std::fill(taken[i].begin(), taken[i].end(), static_cast<std::byte>(i + 1));
    }
    for (std::size_t i = 0; i < taken.size(); ++i)
        CHECK(std::all_of(taken[i].begin(), taken[i].end(), [&](std::byte b) { return b == std::byte(i + 1); }));
}

TEST_CASE("a repeated pattern of use gets the same memory") {
    arena memory;
    const auto first = take_all(memory);
    for (int i = 0; i < 3; ++i) {
        memory.reset();
        const auto again = take_all(memory);
        for (std::size_t j = 0; j < first.size(); ++j) CHECK(again[j].data() == first[j].data());
    }
}
