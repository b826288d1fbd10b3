#pragma once

#include "arguments.hpp"
#include "forecast.hpp"

namespace plan {

/// Prints what training by partial rounds gives, of which `--trigger` and `--staleness` say how they start and which
/// gradients count. A round takes what the recommended exchange takes.
void print_partial(const arguments& chosen, const forecast& all);

/// Throws `wrong_argument` where `--trigger` or `--staleness` names no policy.
void require_policies(const arguments& chosen);

}  // namespace plan
