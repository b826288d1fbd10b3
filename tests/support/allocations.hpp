// Counts what an executable allocates, by `new` or `malloc`. Under a sanitizer, which has a malloc of its own, nothing.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RILL_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RILL_TEST_SANITIZED
#endif

/// How often this thread has asked for memory.
unsigned long allocations();

/// How often all threads have.
unsigned long all_allocations();

/// How many bytes this thread has asked for.
unsigned long long allocated_bytes();
