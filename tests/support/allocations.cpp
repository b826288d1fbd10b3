#include "allocations.hpp"

#include <atomic>
#include <cstddef>

namespace {
thread_local unsigned long of_thread = 0;
std::atomic<unsigned long> of_all{0};
}  // namespace

unsigned long allocations() { return of_thread; }
unsigned long all_allocations() { return of_all.load(std::memory_order_relaxed); }

#ifndef RILL_TEST_SANITIZED

namespace {
void count() {
    ++of_thread;
    of_all.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT(bugprone-reserved-identifier): glibc's own names
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) {
    count();
    return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    count();
    return __libc_memalign(alignment, size);
}
}

#endif
