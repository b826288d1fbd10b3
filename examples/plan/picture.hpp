#pragma once

#include "forecast.hpp"

#include <string>
#include <vector>

namespace plan {

/// Speed-up against ranks, the best topology of each compressor, as a self-contained SVG with logarithmic axes; over
/// one rank alone or, where computing takes no time, over the best exchange that does not compress.
std::string draw(const std::vector<forecast>& by_ranks);

}  // namespace plan
