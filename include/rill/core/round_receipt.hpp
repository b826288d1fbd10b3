#pragma once

#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A contribution that is in a result.
struct contributor {
    rank_t rank = no_rank;
    std::uint32_t age = 0;  ///< rounds by which it came late, plus the age that its rank gave
    double weight = 0;

    friend constexpr bool operator==(const contributor&, const contributor&) = default;
};

/// A contribution that came after its round had ended.
struct latecomer {
    rank_t rank = no_rank;     ///< the sender; ranks below it may have a part in the contribution
    std::uint32_t rounds = 0;  ///< how many rounds have begun since the one it was for
    duration by{};             ///< time from the end of its round, at the parent, to its arrival

    friend constexpr bool operator==(const latecomer&, const latecomer&) = default;
};

/// What a round that need not wait for all ranks did. At the root it describes the result; on other ranks it describes
/// what this rank sent to its parent, which may still arrive too late.
struct round_receipt : receipt {
    std::vector<contributor> in;  ///< in the order of the fold: by rank within each level of the tree
    std::vector<latecomer> late;  ///< arrivals since the previous round; those that still count are also in `in`
    /// Children of this rank that it did not wait for; in a gossip, the peer of an exchange that was skipped.
    std::vector<rank_t> missing;
    double error_bound = 0;     ///< bounds the Euclidean norm of the rounding error in the fold; 0: nothing was rounded
    double decoding_error = 0;  ///< `coded_reduce`: the largest ‖a·B − 1‖₂ of any rank with too few survivors
};

}}  // namespace rill::RILL_ABI
