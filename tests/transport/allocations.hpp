// Counts what this executable allocates; in_process_allocation.cpp does it. A sanitizer has an operator new of its own.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RILL_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RILL_TEST_SANITIZED
#endif

#include <atomic>
#include <cstdint>

extern std::atomic<std::uint64_t> allocations;
