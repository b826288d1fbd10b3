#include <rill/core/light_atomic.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

TEST_CASE("light_atomic: threads that count together get each number once") {
    constexpr std::size_t threads = 4, each = 10'000;
    rill::light_atomic<std::size_t> shared;
    std::vector<std::vector<std::size_t>> taken(threads);
    std::vector<std::thread> takers;
    for (auto& mine : taken)
        takers.emplace_back([&] {
            for (std::size_t i = 0; i < each; ++i) mine.push_back(shared.fetch_add(1));
        });
    for (std::thread& taker : takers) taker.join();
    CHECK(shared.load() == threads * each);
    std::vector<bool> seen(threads * each);
    for (const auto& mine : taken)
        for (const std::size_t number : mine) seen[number] = true;
    CHECK(std::count(seen.begin(), seen.end(), true) == threads * each);
}

TEST_CASE("light_atomic: of threads that replace the same value one succeeds") {
    constexpr std::size_t threads = 4, each = 50'000;
    rill::light_atomic<std::size_t> shared;
    std::vector<std::thread> counters;
    for (std::size_t t = 0; t < threads; ++t)
        counters.emplace_back([&] {
            for (std::size_t i = 0; i < each; ++i)
                for (std::size_t seen = shared.load(); !shared.replace(seen, seen + 1);) seen = shared.load();
        });
    for (std::thread& counter : counters) counter.join();
    CHECK(shared.load() == threads * each);
}

TEST_CASE("light_atomic: is replaced only where it is what was expected") {
    const int a = 0, b = 0;
    rill::light_atomic<const void*> place;
    CHECK(place.load() == nullptr);
    CHECK(place.replace(nullptr, &a));
    CHECK(!place.replace(nullptr, &b));
    CHECK(place.load() == &a);
    place.store(&b);
    CHECK(place.replace(&b, nullptr));
}
