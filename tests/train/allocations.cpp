#include "allocations.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RILL_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RILL_TEST_SANITIZED
#endif

namespace {
thread_local unsigned long count = 0;
}

unsigned long allocations() { return count; }

#ifndef RILL_TEST_SANITIZED

extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT(bugprone-reserved-identifier): glibc's own names
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) {
    ++count;
    return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    ++count;
    return __libc_memalign(alignment, size);
}
}

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
