#include "../support/allocations.hpp"

#include <doctest/doctest.h>

#include <memory>

#ifndef RILL_TEST_SANITIZED

TEST_CASE("allocations: new, aligned new and malloc are counted") {
    struct alignas(64) wide {
        char bytes[64];
    };
    [[maybe_unused]] static void* volatile seen;  // volatile, so that the compiler does not remove the allocations
    const unsigned long before = allocations();
    const std::unique_ptr<int> one(new int(1));
    seen = one.get();
    CHECK(allocations() == before + 1);
    const std::unique_ptr<wide> two(new wide);
    seen = two.get();
    CHECK(allocations() == before + 2);
}

#endif
