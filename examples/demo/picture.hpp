#pragma once

#include "outcome.hpp"

#include <string>
#include <vector>

namespace demo {

/// Draws accuracy against megabytes sent per rank, on a logarithmic axis, as a self-contained SVG.
std::string draw(const std::vector<outcome>& runs);

}  // namespace demo
