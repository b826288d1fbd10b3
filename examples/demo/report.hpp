#pragma once

#include "arguments.hpp"
#include "outcome.hpp"

#include <string>

namespace demo {

void print_table(const outcome& dense, const outcome& sparse);

std::string to_json(const arguments& chosen, const outcome& dense, const outcome& sparse);

/// Writes a file and creates its directory if there is none. Throws `rill::train::data_error`.
void write_text(const std::string& path, const std::string& text);

}  // namespace demo
