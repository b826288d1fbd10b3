#pragma once

/// How often this thread has asked for memory, by `new` or `malloc`: Eigen calls the latter. Under a sanitizer, which
/// has a malloc of its own, always 0.
unsigned long allocations();
