#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/protocol_case.hpp>
#include <rill/testing/protocol_record.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Judges the calls and complaints in the record of a run.
class call_judge {
  public:
    explicit call_judge(const run_record& seen) : seen_(&seen) {}

    /// Returns the first violation found, or an empty string.
    std::string verdict() const {
        std::size_t most = 0;
        for (rank_t r = 0; r < size(); ++r) most = std::max(most, at(r).calls.size());
        for (rank_t r = 0; r < size(); ++r) {
            if (!at(r).complaints.empty()) return told(r, at(r).complaints.front());
            for (const call_record& call : at(r).calls)
                if (std::string wrong = wrong_with(r, call); !wrong.empty()) return wrong;
        }
        for (std::size_t i = 0; i < most; ++i)
            if (std::string wrong = disagreement_in(i); !wrong.empty()) return wrong;
        return {};
    }

  private:
    using end = call_record::end;

    rank_t size() const { return static_cast<rank_t>(seen_->ranks.size()); }
    const rank_record& at(rank_t r) const { return seen_->ranks[static_cast<std::size_t>(r)]; }
    static std::string told(rank_t r, const std::string& what) { return "rank " + std::to_string(r) + ": " + what; }
    static std::string told(rank_t r, const call_record& call, const std::string& what) {
        return told(r, std::string(call.name) + " " + what + (call.said.empty() ? "" : ": " + call.said));
    }

    std::string wrong_with(rank_t r, const call_record& call) const {
        if (call.came == end::wrong) return told(r, call, "gave a wrong result");
        if (call.came != end::failed) return {};
        if (call.is_spared) return told(r, call, "failed though no fault can reach it");
        if (!seen_->has_suffered()) return told(r, call, "failed though nothing went wrong");
        const bool names_the_dead = call.culprit >= 0 && seen_->has_died(call.culprit);
        if (!names_the_dead && !seen_->has_failed_between(call.culprit, call.other))
            return told(r, call, "failed and names neither a rank that died nor a link that failed");
        return {};
    }

    /// Returns what is wrong with the `i`-th calls of all survivors: different results, different culprits, or a
    /// success after an earlier failure in the same group.
    std::string disagreement_in(std::size_t i) const {
        const call_record* result = nullptr;
        const call_record* blaming = nullptr;
        for (rank_t r = 0; r < size(); ++r) {
            if (i >= at(r).calls.size() || seen_->has_died(r)) continue;
            const call_record& call = at(r).calls[i];
            const call_record* const failed = first_failure_in(call.group);
            if (call.came == end::exact && failed != nullptr && failed->step < call.step)
                return told(r, call, "came through after an earlier call of the group had failed: " + failed->said);
            if (call.came == end::failed && blaming != nullptr && seen_->same_first_notice &&
                (blaming->culprit != call.culprit || blaming->other != call.other))
                return told(r, call, "blames another than " + blaming->said);
            if (call.came == end::failed) blaming = &call;
            if (call.came == end::exact && result != nullptr && result->bits != call.bits)
                return told(r, call, "gave other bits than elsewhere");
            if (call.came == end::exact) result = &call;
        }
        return {};
    }
    /// The first failed call of `group` on any survivor, or null.
    const call_record* first_failure_in(int group) const {
        const call_record* first = nullptr;
        for (rank_t r = 0; r < size(); ++r)
            for (const call_record& call : at(r).calls)
                if (call.came == end::failed && call.group == group && !seen_->has_died(r) &&
                    (first == nullptr || call.step < first->step))
                    first = &call;
        return first;
    }

    const run_record* seen_;
};

}  // namespace detail

/// Checks what holds for every run of a collective protocol. Returns an empty string if all of it holds, else what was
/// seen instead.
///
/// - The run ends: no deadlock, no rank that runs beyond the time limit, no exception other than `rill::error`.
/// - Each call on each rank is exact, or fails with an error. The error names as culprit a rank that died, or both ends
///   of a link that has lost or duplicated a message. If no rank died and no message was lost or duplicated, no call
///   fails.
/// - Results agree bit for bit. All failures of one call name the same culprit. After a failure on any survivor, no
///   call of a later step in that group succeeds on any survivor. (Two faults may end two calls: a rank that has
///   completed the first call learns of the second fault only.)
/// - A call that is spared succeeds. No rank complains.
///
/// Calls are compared by their position in `rank_record::calls`: all ranks make the same calls in the same order until
/// they end. Results and culprits are compared among survivors only.
inline std::string exact_or_named_fault(const protocol_case&, const run_record& seen) {
    if (!seen.ended_by.empty()) return seen.ended_by;
    return detail::call_judge(seen).verdict();
}

}}}  // namespace rill::RILL_ABI::testing
