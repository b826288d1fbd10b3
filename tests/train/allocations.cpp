#include "../support/allocations.hpp"

#include <doctest/doctest.h>

#include <memory>

#ifndef RILL_TEST_SANITIZED

TEST_CASE("allocations: the count sees new, aligned new and malloc") {
    struct alignas(64) wide {
        char bytes[64];
    };
    [[maybe_unused]] static void* volatile seen;  // or the compiler may leave the allocations out
    const unsigned long before = allocations();
    const std::unique_ptr<int> one(new int(1));
    seen = one.get();
    CHECK(allocations() == before + 1);
    const std::unique_ptr<wide> two(new wide);
    seen = two.get();
    CHECK(allocations() == before + 2);
}

#endif
