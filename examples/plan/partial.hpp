#pragma once

#include "arguments.hpp"
#include "forecast.hpp"

namespace plan {

/// Prints what training by partial rounds gives, of which `--trigger` and `--staleness` say how they start and which
/// gradients count. A round takes what the recommended exchange takes. Throws `std::runtime_error` where they name no
/// policy.
void print_partial(const arguments& chosen, const forecast& all);

}  // namespace plan
