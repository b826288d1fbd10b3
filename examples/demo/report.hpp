#pragma once

#include "arguments.hpp"
#include "outcome.hpp"

#include <string>

namespace demo {

void print_table(const outcome& dense, const outcome& sparse);

std::string to_json(const arguments& chosen, const outcome& dense, const outcome& sparse);

}  // namespace demo
