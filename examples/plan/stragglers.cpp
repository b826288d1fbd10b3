#include "stragglers.hpp"

#include <rill/transport/compute_times.hpp>
#include <rill/transport/read_compute_trace.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace plan {

namespace {

constexpr std::uint64_t steps = 400;  // the mean is taken over this many steps

/// The numbers behind `name:`, separated by colons.
std::vector<double> numbers_of(const std::string& text) {
    std::vector<double> numbers;
    const char* at = text.c_str() + std::min(text.size(), text.find(':'));
    while (*at == ':') {
        char* end = nullptr;
        numbers.push_back(std::strtod(at + 1, &end));
        if (end == at + 1 || (*end != ':' && *end != '\0')) return {};
        at = end;
    }
    return numbers;
}

rill::duration of_seconds(double seconds) { return rill::nanoseconds(std::llround(seconds * 1e9)); }

}  // namespace

rill::compute_model compute_model_of(const arguments& chosen) {
    const std::string& text = chosen.stragglers;
    const std::string name = text.substr(0, text.find(':'));
    const auto numbers = numbers_of(text);
    const double mean = chosen.compute;
    if (name == "trace") return rill::read_compute_trace(text.substr(std::min(text.size(), name.size() + 1)));
    if (name == "none" && text == name) return rill::constant_compute{of_seconds(mean)};
    if (name == "uniform" && numbers.size() == 1 && numbers[0] >= 0 && numbers[0] <= 1)
        return rill::uniform_compute{of_seconds(mean * (1 - numbers[0])), of_seconds(mean * (1 + numbers[0])),
                                     chosen.seed};
    if (name == "exponential" && numbers.size() == 1 && numbers[0] >= 0 && numbers[0] <= 1)
        return rill::shifted_exponential{of_seconds(mean * (1 - numbers[0])), of_seconds(mean * numbers[0]),
                                         chosen.seed};
    if (name == "slow" && numbers.size() == 2 && numbers[0] >= 0 && numbers[0] <= chosen.ranks &&
        numbers[0] == std::floor(numbers[0]) && numbers[1] >= 1 && numbers[1] <= 1e6)
        return rill::slowed_ranks{rill::constant_compute{of_seconds(mean)},
                                  std::vector<double>(static_cast<std::size_t>(numbers[0]), numbers[1])};
    throw wrong_argument("--stragglers: '" + text +
                         "' is none of none, uniform:SPREAD, exponential:TAIL, slow:RANKS:FACTOR, trace:FILE, with "
                         "SPREAD and TAIL in [0, 1], RANKS a whole number up to --ranks and FACTOR from 1 to 1e6");
}

double exponential_share(const arguments& chosen) {
    const auto numbers = numbers_of(chosen.stragglers);
    if (chosen.stragglers.rfind("exponential:", 0) != 0 || numbers.size() != 1 || numbers[0] < 0 || numbers[0] > 1)
        throw wrong_argument("--coded: needs --stragglers exponential:TAIL, with TAIL in [0, 1]");
    return numbers[0];
}

waiting wait_for(const arguments& chosen, int ranks) {
    const rill::compute_model model = compute_model_of(chosen);
    waiting found{.left_out = std::max(1, ranks / 10)};
    std::vector<double> times(static_cast<std::size_t>(ranks));
    for (std::uint64_t step = 0; step < steps; ++step) {
        for (rill::rank_t rank = 0; rank < ranks; ++rank) {
            double& time = times[static_cast<std::size_t>(rank)];
            time = model(rank, step, 1).seconds();
            found.alone += time / ranks;
        }
        std::sort(times.begin(), times.end());
        found.slowest += times.back();
        found.others += times[static_cast<std::size_t>(ranks - found.left_out - 1)];
    }
    found.alone /= steps;
    found.slowest /= steps;
    found.others /= steps;
    return found;
}

}  // namespace plan
