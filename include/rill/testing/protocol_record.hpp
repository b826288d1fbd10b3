#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/simulated.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// The result of a call that returned, on one rank.
struct call_result {
    bool is_exact = false;   ///< whether the result is the expected one
    std::uint64_t bits = 0;  ///< a hash of the result if it must be the same on all ranks, else 0
};

/// The outcome of one call on one rank.
struct call_record {
    enum class end : std::uint8_t { none, exact, wrong, failed };

    const char* name = "";
    int group = 0;           ///< calls of one group fail together: see `exact_or_named_fault`
    int step = 0;            ///< calls of one step are in flight together; the next step begins after they end
    bool is_spared = false;  ///< no fault of the plan can reach it
    end came = end::none;
    std::uint64_t bits = 0;
    rank_t culprit = no_rank;  ///< set if the call failed, as are `other` and `said`
    rank_t other = no_rank;
    std::string said{};
};

/// What happened on one rank. Its protocol fills it in.
struct rank_record {
    std::vector<call_record> calls;
    std::vector<std::string> complaints;  ///< violations that the protocol itself has noticed
    bool has_ended = false;               ///< the body has returned; set by the harness

    /// Runs `call()`, which returns a `call_result` or throws a `rill::error`, and records its outcome.
    template <class Call>
    const call_record& attempt(const call_record& which, Call&& call) {
        const std::size_t at = calls.size();
        calls.push_back(which);
        try {
            const call_result result = call();
            calls[at].came = result.is_exact ? call_record::end::exact : call_record::end::wrong;
            calls[at].bits = result.bits;
        } catch (const error& e) {
            calls[at].came = call_record::end::failed;
            calls[at].culprit = e.culprit();
            calls[at].other = e.notice().other;
            calls[at].said = e.what();
        }
        return calls[at];
    }
    void complain(std::string what) { complaints.push_back(std::move(what)); }
};

/// What happened in a run.
struct run_record {
    std::vector<rank_record> ranks;
    simulated::report report{};      ///< if the run came to its end
    bool same_first_notice = false;  ///< control was ideal, so that of racing notices one won on all ranks
    std::string ended_by{};          ///< what else ended it: an exception of a body, a deadlock, the time limit

    /// Whether the rank was killed: its body has not returned, or the rank has begun anew.
    bool has_died(rank_t rank) const {
        const auto at = static_cast<std::size_t>(rank);
        return rank >= 0 && at < report.ranks.size() && (!ranks[at].has_ended || report.ranks[at].lives > 1);
    }
    /// Whether the link lost or duplicated messages, or lost control; what was sent to a rank that died does not count.
    bool has_failed(const simulated::link_report& link) const {
        return link.lost + link.duplicated + link.control_lost > 0 && !has_died(link.receiver);
    }
    /// Whether messages between two ranks were lost or duplicated, in either direction.
    bool has_failed_between(rank_t a, rank_t b) const {
        for (const simulated::link_report& each : report.links)
            if (has_failed(each) &&
                ((each.source == a && each.receiver == b) || (each.source == b && each.receiver == a)))
                return true;
        return false;
    }
    /// Whether a rank has died or a link has failed.
    bool has_suffered() const {
        for (std::size_t r = 0; r < ranks.size(); ++r)
            if (has_died(static_cast<rank_t>(r))) return true;
        for (const simulated::link_report& each : report.links)
            if (has_failed(each)) return true;
        return false;
    }
    bool any_call_failed() const {
        for (const rank_record& each : ranks)
            for (const call_record& call : each.calls)
                if (call.came == call_record::end::failed) return true;
        return false;
    }
};

}}}  // namespace rill::RILL_ABI::testing
