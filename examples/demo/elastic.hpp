// `--elastic`: the training goes on while its processes are killed and begin anew. In a build without the component
// tcp it throws.
#pragma once

#include "arguments.hpp"
#include "images.hpp"

namespace demo {

/// Starts a process for each rank, kills two and lets one begin anew. Prints what the members tell. Returns the exit
/// code. The caller must have no other thread.
int show_elastic(const arguments& chosen, const images& data);

}  // namespace demo
