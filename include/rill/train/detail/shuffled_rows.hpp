#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// Fills `order` with an epoch's permutation of its rows, a pure function of (key, epoch).
inline void shuffle_rows(std::vector<std::uint32_t>& order, random_key key, std::uint64_t epoch) {
    std::iota(order.begin(), order.end(), 0U);
    random_sequence random(key.derive(epoch));
    for (std::size_t left = order.size(); left > 1; --left)
        std::swap(order[left - 1], order[static_cast<std::size_t>(random.below(left))]);
}

}}}  // namespace rill::RILL_ABI::train::detail
