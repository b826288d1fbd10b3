#pragma once

#include "forecast.hpp"

#include <string>
#include <vector>

namespace plan {

/// Draws speed-up against ranks for the best topology of each compressor, as a self-contained SVG with log axes: over
/// one rank alone or, where computing takes no time, over the best exchange without compression.
std::string draw(const std::vector<forecast>& by_ranks);

}  // namespace plan
