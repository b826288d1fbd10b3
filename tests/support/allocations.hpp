// Counts what an executable allocates, by `new` or `malloc`. Under a sanitizer, which has a malloc of its own, nothing.
#pragma once

#include "sanitized.hpp"

/// How often this thread has asked for memory.
unsigned long allocations();

/// How often all threads have.
unsigned long all_allocations();

/// How many bytes this thread has asked for.
unsigned long long allocated_bytes();
