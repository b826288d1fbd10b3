#pragma once

#include "arguments.hpp"

namespace plan {

/// Prints how fast models come together by matchings over fast links, for some speeds that count as fast, and says
/// which of them to choose. Throws `std::runtime_error` if the links cannot be read, or where Boost.Graph is missing.
void print_gossip(const arguments& chosen);

}  // namespace plan
