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
    std::uint32_t age = 0;  ///< rounds by which it came late, and what its rank said itself
    double weight = 0;

    friend constexpr bool operator==(const contributor&, const contributor&) = default;
};

/// A contribution that came after its round had ended.
struct latecomer {
    rank_t rank = no_rank;     ///< who sent it: itself, or for the ranks below it
    std::uint32_t rounds = 0;  ///< how many rounds have begun since its own
    duration by{};             ///< since its own round ended, at its parent

    friend constexpr bool operator==(const latecomer&, const latecomer&) = default;
};

/// What a round that need not wait for everybody did. At the root of it, of the result; elsewhere, of what this rank
/// handed up, which may yet come too late.
struct round_receipt : receipt {
    std::vector<contributor> in;  ///< in the order of the fold: by rank within each level of the tree
    std::vector<latecomer> late;  ///< that were met since the round before; whoever counts all the same is also in `in`
    std::vector<rank_t> missing;  ///< children of this rank that it did not wait for
    double error_bound = 0;  ///< of rounding on the way, in the Euclidean norm of the fold, if anything was rounded
    double decoding_error = 0;  ///< of a coded one: the largest ‖a·B − 1‖₂ of any rank that had to do with too few
};

}}  // namespace rill::RILL_ABI
