#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What is wrong with one row of a mixing, if anything is.
struct mixing_defect {
    const char* what = nullptr;  ///< complete sentence, or none
    rank_t peer = no_rank;       ///< where another rank is concerned

    constexpr explicit operator bool() const { return what != nullptr; }
};

/// Looks at the row of `rank` by itself: weights are numbers and not negative, ends are other ranks and ascend.
/// O(degree).
RILL_CONSTEXPR_VECTORS mixing_defect find_defect(const mixing_row& row, rank_t rank, int size) {
    const auto is_weight = [](double weight) { return weight >= 0 && weight <= 1e300; };
    const auto is_other = [&](rank_t peer) { return 0 <= peer && peer < size && peer != rank; };
    if (!is_weight(row.own_weight)) return {"its own weight is negative or no number"};
    rank_t last = no_rank;
    for (const mixing_end& from : row.senders) {
        if (!is_other(from.peer)) return {"a sender is no other rank", from.peer};
        if (from.peer <= last) return {"senders do not ascend", from.peer};
        if (!is_weight(from.weight)) return {"a weight is negative or no number", from.peer};
        last = from.peer;
    }
    last = no_rank;
    for (const rank_t to : row.receivers) {
        if (!is_other(to)) return {"a receiver is no other rank", to};
        if (to <= last) return {"receivers do not ascend", to};
        last = to;
    }
    return {};
}

}}}  // namespace rill::RILL_ABI::detail
