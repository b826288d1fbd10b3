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

/// What a call of a protocol gave on one rank, where it returned.
struct call_result {
    bool is_exact = false;   ///< what it had to be
    std::uint64_t bits = 0;  ///< a hash of the result, where that must be the same on all ranks; else 0
};

/// What became of one call on one rank.
struct call_record {
    enum class end : std::uint8_t { none, exact, wrong, failed };

    const char* name = "";
    int group = 0;           ///< calls of one group fail together: see `exact_or_named_fault`
    int step = 0;            ///< calls of one step are in flight together; those of the next begin when they have ended
    bool is_spared = false;  ///< no fault of the plan can reach it
    end came = end::none;
    std::uint64_t bits = 0;
    rank_t culprit = no_rank;  ///< and these, where it failed
    rank_t other = no_rank;
    std::string said{};
};

/// What happened on one rank. Its protocol fills it in.
struct rank_record {
    std::vector<call_record> calls;
    std::vector<std::string> complaints;  ///< what should not be, in the protocol's own words
    bool has_ended = false;               ///< the body has returned; set by the harness

    /// Runs `call()`, which returns a `call_result` or throws a `rill::error`, and keeps what came of it.
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
    simulated::report report{};  ///< of a run that came to its end
    std::string ended_by{};      ///< what ended it otherwise: an exception of a body, a deadlock, its time

    /// Whether the plan has ended a rank's life before its body returned, or its life after that.
    bool has_died(rank_t rank) const {
        const auto at = static_cast<std::size_t>(rank);
        return rank >= 0 && at < report.ranks.size() && (!ranks[at].has_ended || report.ranks[at].lives > 1);
    }
    /// Whether messages of a link were lost or came twice, other than those to a rank that died.
    bool has_failed(const simulated::link_report& link) const {
        return link.lost + link.duplicated > 0 && !has_died(link.receiver);
    }
    /// Whether messages between two ranks were lost or came twice, in any direction.
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
