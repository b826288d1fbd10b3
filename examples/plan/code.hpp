#pragma once

#include "forecast.hpp"

#include <string>

namespace plan {

/// The C++ of a way to exchange gradients, to paste: `net` is a rank's endpoint, `gradient` and `update` are vectors of
/// floats.
std::string code_of(const row& which, double density);

/// The C++ of steps that go on without the slowest; `model` is a vector of floats, too.
std::string code_of_rounds(int left_out);

/// The C++ of steps with a gradient code; `points` says how many there are.
std::string code_of_coded(int width, int depth, int stragglers);

}  // namespace plan
