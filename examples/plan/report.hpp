#pragma once

#include "arguments.hpp"
#include "computing.hpp"
#include "forecast.hpp"

#include <string>

namespace plan {

/// Prints what was predicted, a line for each topology and compressor.
/// Says first what is assumed and what was measured.
void print_table(const arguments& chosen, const computing_costs& costs, const forecast& all);

/// Prints what to choose, and why; above all when not to compress.
void print_advice(const forecast& all);

/// Prints what to do where the slowest rank costs more than a tenth; nothing else.
void print_stragglers(const forecast& all);

std::string to_csv(const forecast& all);

/// Throws `std::runtime_error` where the file cannot be written.
void write_text(const std::string& path, const std::string& text);

}  // namespace plan
