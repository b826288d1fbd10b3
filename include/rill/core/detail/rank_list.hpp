#pragma once

#include <rill/core/config.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace detail {

inline bool contains(std::span<const rank_t> ranks, rank_t rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// "3, 5".
[[gnu::noinline]] inline std::string rank_list(std::span<const rank_t> ranks) {
    std::string all;
    for (std::size_t i = 0; i < ranks.size(); ++i) all += text_of({i == 0 ? "" : ", ", ranks[i]});
    return all;
}
/// "rank 3", "ranks 3, 5".
[[gnu::noinline]] inline std::string text_of_ranks(std::span<const rank_t> ranks) {
    return text_of({ranks.size() == 1 ? "rank " : "ranks ", rank_list(ranks)});
}

}}}  // namespace rill::RILL_ABI::detail
