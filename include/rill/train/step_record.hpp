#pragma once

#include <rill/core/receipt.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A gradient that cannot be used: whose, and its first coordinate that is a NaN or infinite.
struct invalid_gradient {
    rank_t rank = no_rank;
    std::size_t coordinate = 0;

    friend bool operator==(const invalid_gradient&, const invalid_gradient&) = default;
};

/// What one step of training did, as one rank saw it.
struct step_record {
    std::uint64_t step = 0;
    double loss = 0;                          ///< of this rank's batch, before the step
    receipt exchange{};                       ///< its `wire`: all that this rank sent and received in the step
    std::vector<invalid_gradient> invalid{};  ///< why the step was skipped, the same on all ranks; else empty

    bool skipped() const { return !invalid.empty(); }
};

/// For people: "step 7 skipped: the gradient of rank 3 is not finite at coordinate 12".
inline std::string describe_skip(const step_record& record) {
    std::string text = "step " + std::to_string(record.step) + " skipped: ";
    for (const invalid_gradient& bad : record.invalid) {
        if (&bad != record.invalid.data()) text += ", ";
        text += "the gradient of rank " + std::to_string(bad.rank) + " is not finite at coordinate " +
                std::to_string(bad.coordinate);
    }
    return text;
}

}}}  // namespace rill::RILL_ABI::train
