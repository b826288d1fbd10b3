#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/compute_times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI {

/// Reads the times that ranks took to compute: a line for each rank, seconds in decimal separated by commas or blanks,
/// `#` before a comment. Throws `std::runtime_error`, which names file and line, for anything else.
inline compute_trace read_compute_trace(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("rill: " + path + ": cannot be read");
    std::vector<std::vector<duration>> rows;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        line.resize(std::min(line.size(), line.find('#')));
        for (char& c : line)
            if (c == ',' || c == '\t' || c == '\r') c = ' ';
        const auto refuse = [&](const std::string& why) {
            throw std::runtime_error("rill: " + path + ": line " + std::to_string(number) + ": " + why);
        };
        std::vector<duration> row;
        for (const char* at = line.c_str();;) {
            while (*at == ' ') ++at;
            if (*at == '\0') break;
            char* end = nullptr;
            const double seconds = std::strtod(at, &end);
            if (end == at || (*end != ' ' && *end != '\0')) refuse("'" + std::string(at) + "' is no number");
            if (!std::isfinite(seconds) || seconds < 0) refuse("a time must be finite and not negative");
            row.push_back(detail::duration_of(seconds));
            at = end;
        }
        if (!row.empty()) rows.push_back(std::move(row));
    }
    if (file.bad()) throw std::runtime_error("rill: " + path + ": cannot be read to its end");
    if (rows.empty()) throw std::runtime_error("rill: " + path + ": holds no times");
    return compute_trace(std::move(rows));
}

}  // namespace rill::inline RILL_ABI
