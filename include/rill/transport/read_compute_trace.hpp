#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/detail/printable.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

namespace detail {

/// Says why reading a number failed with `error`, or why `seconds` is not a valid time; null for a valid time.
inline const char* refusal_of_time(std::errc error, double seconds) {
    if (error == std::errc::result_out_of_range) return "is beyond the numbers that can be read";
    if (error != std::errc{}) return "is no number";
    return std::isfinite(seconds) && seconds >= 0 ? nullptr : "is not a time, which must be finite and not negative";
}

/// Reads the times in one line, whose comment has been removed; `refuse(word, why)` must throw.
template <class Refuse>
std::vector<duration> times_of(std::string_view line, Refuse&& refuse) {
    constexpr std::string_view between = " ,\t\r";
    std::vector<duration> row;
    for (std::size_t at = line.find_first_not_of(between); at != std::string_view::npos;) {
        const std::string_view word = line.substr(at, line.find_first_of(between, at) - at);
        const char* const stop = word.data() + word.size();
        double seconds = 0;
        const auto [end, error] = std::from_chars(word.data(), stop, seconds);
        const bool is_whole_word = error != std::errc{} || end == stop;
        const char* why = refusal_of_time(is_whole_word ? error : std::errc::invalid_argument, seconds);
        if (why != nullptr) refuse(word, why);
        row.push_back(duration_of(seconds));
        at = line.find_first_not_of(between, at + word.size());
    }
    return row;
}

}  // namespace detail

/// Reads measured computing times from a file: one line per rank, decimal seconds (`0.5`, `1e-3`) separated by commas
/// or blanks; `#` begins a comment, and lines without times are skipped. Throws `std::runtime_error` that names the
/// file (and the line, for a word that is no time) for anything else.
inline compute_trace read_compute_trace(const std::string& path) {
    const auto fail = [&](const std::string& why) {
        throw std::runtime_error(std::string("rill: ") + path + ": " + why);
    };
    std::ifstream file(path);
    if (!file) fail("cannot be read");
    std::vector<std::vector<duration>> rows;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        const auto refuse = [&](std::string_view word, const char* why) {
            fail(std::string("line ") + std::to_string(number) + ": '" + detail::printable(word) + "' " + why);
        };
        std::vector<duration> row = detail::times_of(std::string_view(line).substr(0, line.find('#')), refuse);
        if (!row.empty()) rows.push_back(std::move(row));
    }
    if (file.bad()) fail("cannot be read to its end");
    if (rows.empty()) fail("holds no times");
    return compute_trace(std::move(rows));
}

}}  // namespace rill::RILL_ABI
