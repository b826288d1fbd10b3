#pragma once

#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A gradient that is not finite, and its first coordinate that is a NaN or infinite.
struct invalid_gradient {
    rank_t rank = no_rank;  ///< whose it is; `no_rank` if it is the sum of several
    std::size_t coordinate = 0;

    friend bool operator==(const invalid_gradient&, const invalid_gradient&) = default;
};

/// The times that the phases of a step took on one rank, on its transport's clock.
struct step_phases {
    duration compute{};
    duration exchange{};  ///< waiting for the exchange, without what overlapped with computing
    duration update{};

    friend constexpr bool operator==(const step_phases&, const step_phases&) = default;
};

/// What one step of training did, as one rank saw it.
struct step_record {
    std::uint64_t step = 0;  ///< its number, from 0; once the run has ended, how many steps that had
    double loss = 0;         ///< of this rank's batch, before the step
    receipt exchange{};      ///< its `wire`: all that this rank sent and received in the step
    duration elapsed{};      ///< time of the whole step
    step_phases phases{};
    /// Why the step was skipped; else empty. If the strategy keeps replicas equal, all ranks have the same list; else
    /// it tells of this rank alone, or of a sum that this rank has received.
    std::vector<invalid_gradient> invalid{};
    /// How gradients are exchanged, where the strategy has chosen that (`automatic`); else empty. Valid while the
    /// strategy lives.
    std::string_view choice{};
    bool is_over = false;  ///< the run has ended, and nothing was done

    bool skipped() const { return !invalid.empty(); }
    /// Whether a step was made: false once the run has ended.
    explicit operator bool() const { return !is_over; }
};

/// What a trainer calls with the record of each step, on its rank.
template <class H>
concept StepHook = std::move_constructible<H> && requires(H& hook, const step_record& record) { hook(record); };

/// Ignores the records of steps.
struct no_hook {
    void operator()(const step_record&) const {}
};

static_assert(StepHook<no_hook>);

/// A text such as "step 7 skipped: the gradient of rank 3 is not finite at coordinate 12", or for a sum of several "the
/// sum of the gradients is…".
inline std::string describe_skip(const step_record& record) {
    std::string text = "step " + std::to_string(record.step) + " skipped: ";
    for (const invalid_gradient& bad : record.invalid) {
        if (&bad != record.invalid.data()) text += ", ";
        text += bad.rank == no_rank ? "the sum of the gradients" : "the gradient of rank " + std::to_string(bad.rank);
        text += " is not finite at coordinate " + std::to_string(bad.coordinate);
    }
    return text;
}

}}}  // namespace rill::RILL_ABI::train
