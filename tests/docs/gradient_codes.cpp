// Computes the table of docs/gradient_codes.md from the codes and compares it with the document.

#include "document.hpp"

#include <rill/gradient_code/default_code.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace {

using namespace rill::gradient_code;

/// Two significant digits, one from 100 on: for many workers no further digit matters.
std::string rough(double value) {
    if (std::isinf(value)) return "> 10^7";
    char text[32];
    if (value < 100) {
        std::snprintf(text, sizeof text, "%.2g", value);
        return text;
    }
    const int power = static_cast<int>(std::floor(std::log10(value)));
    std::snprintf(text, sizeof text, "%.0f·10^%d", value / std::pow(10, power), power);
    return text;
}

std::string measured(const amplification_report& report) {
    return rough(report.median) + " / " + rough(report.worst) + (report.is_exact ? "" : " *");
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", value);
    return text;
}

std::string row_of(int n, int s) {
    const amplification_options few{.samples = 200};
    return "| (" + std::to_string(n) + ", " + std::to_string(s) + ") | " + short_number((s + 1.0) / n) + " | " +
           measured(amplification(cyclic_mds{}.bind(n, s), few)) + " | " +
           measured(amplification(cyclic_repetition{}.bind(n, s), few)) + " | " + short_number(1.0 / (n / (s + 1))) +
           " | `" + default_code(n, s, rill::element_type::float32).policy + "` | `" +
           default_code(n, s, rill::element_type::float64).policy + "` |\n";
}

}  // namespace

TEST_CASE("docs/gradient_codes.md: what codes cost and amplify") {
    std::string table =
        "| (n, s) | least load | `cyclic_mds` | `cyclic_repetition` | load of groups | default for float | for double "
        "|\n"
        "|---|---|---|---|---|---|---|\n";
    for (const auto& [n, s] :
         {std::pair{12, 1}, {12, 2}, {12, 3}, {12, 4}, {12, 5}, {11, 3}, {11, 5}, {84, 21}, {156, 39}})
        table += row_of(n, s);
    require_block("gradient_codes.md", "codes", table);
}
