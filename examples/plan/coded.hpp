#pragma once

#include "arguments.hpp"

namespace plan {

/// Prints the step times of gradient codes over trees, the times of the alternatives, and whether coding pays. Throws
/// `std::runtime_error` where the stragglers are not exponential.
void print_coded(const arguments& chosen);

}  // namespace plan
