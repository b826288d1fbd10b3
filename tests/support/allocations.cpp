#include "allocations.hpp"

#include <atomic>
#include <cstddef>

namespace {
thread_local unsigned long of_thread = 0;
thread_local unsigned long long bytes_of_thread = 0;
std::atomic<unsigned long> of_all{0};
std::atomic<unsigned long long> bytes_of_all{0};
}  // namespace

unsigned long allocations() { return of_thread; }
unsigned long all_allocations() { return of_all.load(std::memory_order_relaxed); }
unsigned long long allocated_bytes() { return bytes_of_thread; }
unsigned long long all_allocated_bytes() { return bytes_of_all.load(std::memory_order_relaxed); }

#ifndef RILL_TEST_SANITIZED

namespace {
void count(std::size_t bytes) {
    ++of_thread;
    bytes_of_thread += bytes;
    of_all.fetch_add(1, std::memory_order_relaxed);
    bytes_of_all.fetch_add(bytes, std::memory_order_relaxed);
}
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT(bugprone-reserved-identifier): glibc's own names
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) {
    count(size);
    return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}
}

#endif
