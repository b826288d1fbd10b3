// How many runs a campaign plays, set by environment variables.
#pragma once

#include <rill/testing/fault_kind.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "../support/sanitized.hpp"

namespace protocols {

inline std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Each compiler plays another part of the cases.
#if defined(__clang__)
constexpr std::uint64_t first_by_default = 1'000'000'000;
#else
constexpr std::uint64_t first_by_default = 0;
#endif
#ifdef RILL_TEST_SANITIZED
constexpr std::uint64_t one_in_by_default = 10;
#else
constexpr std::uint64_t one_in_by_default = 1;
#endif

// RILL_PROTOCOL_RUNS: runs per cell of the coverage. RILL_PROTOCOL_SEED: the first seed. RILL_PROTOCOL_ONE_IN: plays
// only one of this many runs, for a slow machine; some cells of the coverage may then stay empty.
inline const std::uint64_t runs_of_each_cell = number_in("RILL_PROTOCOL_RUNS", 1);
inline const std::uint64_t first_seed = number_in("RILL_PROTOCOL_SEED", first_by_default);
inline const std::uint64_t one_in = number_in("RILL_PROTOCOL_ONE_IN", one_in_by_default);

constexpr int least_ranks = 2;
constexpr int most_ranks = 16;

inline std::vector<std::string> rank_names() {
    std::vector<std::string> names;
    for (int ranks = least_ranks; ranks <= most_ranks; ++ranks) names.push_back("P=" + std::to_string(ranks));
    return names;
}

inline std::vector<std::string> fault_names() {
    std::vector<std::string> names;
    for (const rill::testing::fault_kind kind : rill::testing::every_fault_kind)
        names.emplace_back(rill::testing::name(kind));
    return names;
}

}  // namespace protocols
