#pragma once

#include "arguments.hpp"
#include "training.hpp"

#include <string>
#include <vector>

namespace text {

void print_samples(const arguments& chosen, const samples& data);

void print_table(const std::vector<outcome>& runs);

std::string to_json(const arguments& chosen, const samples& data, const std::vector<outcome>& runs);

/// Draws loss over seconds of training as a self-contained SVG.
std::string draw(const std::vector<outcome>& runs);

}  // namespace text
