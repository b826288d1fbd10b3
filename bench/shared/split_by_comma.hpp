#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace bench {

/// The names of a list such as "mpi,ring".
inline std::vector<std::string> split_by_comma(const std::string& names) {
    std::vector<std::string> parts;
    std::istringstream in(names);
    for (std::string name; std::getline(in, name, ',');) parts.push_back(name);
    return parts;
}

}  // namespace bench
