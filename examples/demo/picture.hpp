#pragma once

#include "outcome.hpp"

#include <string>
#include <vector>

namespace demo {

/// Accuracy against megabytes sent per rank, as a self-contained SVG; the megabytes on a logarithmic axis.
std::string draw(const std::vector<outcome>& runs);

}  // namespace demo
