#pragma once

#include "arguments.hpp"

namespace plan {

/// Prints what gradient codes over trees would take, what they are compared with, and whether coding pays. Throws
/// `std::runtime_error` where the stragglers are not exponential.
void print_coded(const arguments& chosen);

}  // namespace plan
