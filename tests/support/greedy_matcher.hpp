#pragma once

#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace support {

/// Takes edges in the order given. On dense graphs it leaves few ranks over. Models `Matcher`.
struct greedy_matcher {
    static constexpr const char* name = "greedy";
    static std::vector<rill::rank_t> match(int ranks, std::span<const std::array<rill::rank_t, 2>> edges) {
        std::vector<rill::rank_t> partners(static_cast<std::size_t>(ranks), rill::no_rank);
        for (const auto& [a, b] : edges) {
            rill::rank_t &of_a = partners[static_cast<std::size_t>(a)], &of_b = partners[static_cast<std::size_t>(b)];
            if (of_a == rill::no_rank && of_b == rill::no_rank) of_a = b, of_b = a;
        }
        return partners;
    }
    friend bool operator==(greedy_matcher, greedy_matcher) = default;
};

}  // namespace support
