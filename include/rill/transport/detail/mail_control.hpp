#pragma once

#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/call_history.hpp>
#include <rill/transport/detail/call_table.hpp>
#include <rill/transport/detail/failures.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// What ends all contexts where a rank has gone without a farewell.
inline abort_notice notice_of_loss(rank_t gone) {
    return {
        .context = every_context, .culprit = gone, .reason = text_of({"rank ", gone, " has gone without a farewell"})};
}

/// One rank's knowledge from the control channel: notices, calls, and open questions.
struct control {
    struct question {
        rank_t peer;
        std::uint64_t context;
        std::uint64_t number;

        friend bool operator==(const question&, const question&) = default;
    };
    struct answer {
        rank_t peer;
        std::uint64_t context;
        rill::detail::call_history calls;
    };

    struct report {
        rank_t source;
        abort_notice notice;

        auto order() const { return std::pair(notice.culprit, source); }
    };

    rill::detail::call_table calls{};
    std::unordered_map<std::uint64_t, std::vector<abort_notice>> notices{};  ///< of each context, in order
    std::vector<report> reports{};      ///< aborts, none of which is known to be the first
    std::vector<question> questions{};  ///< of others, not yet answered
    std::vector<answer> answers{};      ///< from each peer and context
    std::uint32_t rounds_heard = 0;     ///< of leaving, by bit
    int rounds_told = 0;
    bool has_left = false;
    bool has_departed = false;              ///< this rank's body has returned
    bool any_failed = false;                ///< of those that left
    bool monitors = false;                  ///< this rank is told what becomes of the others, and goes on
    std::optional<abort_notice> failure{};  ///< what this rank's body has thrown

    /// What has ended the waits on a channel.
    const abort_notice* find_notice(channel on) const {
        if (notices.empty()) return nullptr;
        for (const std::uint64_t context : {on.context, every_context})
            if (const auto found = notices.find(context); found != notices.end())
                for (const abort_notice& notice : found->second)
                    if (notice.ends(on.tag)) return &notice;
        return nullptr;
    }
    /// The notice that ends all that this one would end.
    const abort_notice* first_before(const abort_notice& notice) const {
        return find_notice({notice.context, notice.first_tag});
    }

    /// Finds the notice of the failure that `told` reports in ranks of a subgroup, so that this endpoint's ranks are
    /// known.
    std::optional<abort_notice> origin_of(const abort_notice& told) const {
        for (const auto& [context, all] : notices)
            for (const abort_notice& notice : all)
                if (rill::detail::same_failure(notice, told)) return notice;
        return std::nullopt;
    }

    /// Stores a notice unless its context already has one. One of all contexts ends none where this rank monitors.
    void learn(const abort_notice& notice) {
        const bool ends_nothing = monitors && notice.context == every_context;
        if (!ends_nothing && first_before(notice) == nullptr) notices[notice.context].push_back(notice);
        std::erase_if(reports, [&](const report& r) {
            return first_before(r.notice) != nullptr || (ends_nothing && r.notice.context == every_context);
        });
    }
    /// What has ended others by now is told to this rank as their ends.
    void begin_to_monitor() {
        monitors = true;
        notices.erase(every_context);
    }
    /// The report for a context with the lowest culprit, so that ranks with equal reports choose the same one. There
    /// must be a report for the context.
    const abort_notice& foremost_report(std::uint64_t context) const {
        const report* foremost = nullptr;
        for (const report& r : reports)
            if (r.notice.context == context && (foremost == nullptr || r.order() < foremost->order())) foremost = &r;
        return foremost->notice;
    }

    void learn(rank_t peer, std::uint64_t context, const call_signature& call) {
        const auto found = std::find_if(answers.begin(), answers.end(), [=](const answer& known) {
            return known.peer == peer && known.context == context;
        });
        answer& known = found == answers.end() ? answers.emplace_back(answer{peer, context, {}}) : *found;
        known.calls.announce(call);
    }
    /// The calls that `peer` is known to have entered in a context, or null.
    rill::detail::call_history* told(rank_t peer, std::uint64_t context) {
        for (answer& known : answers)
            if (known.peer == peer && known.context == context) return &known.calls;
        return nullptr;
    }

    void remember(const question& asked) {
        if (std::find(questions.begin(), questions.end(), asked) == questions.end()) questions.push_back(asked);
    }

    void forget(std::uint64_t context) {
        std::erase_if(questions, [=](const question& q) { return q.context == context; });
        std::erase_if(answers, [=](const answer& a) { return a.context == context; });
    }
};

}}}  // namespace rill::RILL_ABI::mail
