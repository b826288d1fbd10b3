// Counts what an executable allocates, by `new` or `malloc`. Counts nothing under a sanitizer, which has its own
// malloc.
#pragma once

#include "sanitized.hpp"

/// The number of allocations of this thread.
unsigned long allocations();

/// The number of allocations of all threads.
unsigned long all_allocations();

/// The number of bytes that this thread has allocated.
unsigned long long allocated_bytes();

/// The number of bytes that all threads have allocated.
unsigned long long all_allocated_bytes();
