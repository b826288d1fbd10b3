#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/call_table.hpp>
#include <rill/transport/detail/same_failure.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace rill::inline RILL_ABI::mpi::detail {

/// What one rank knows of the control channel: notices, calls, who has asked for which.
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
        call_signature call;
    };

    rill::detail::call_table calls{};
    std::unordered_map<std::uint64_t, abort_notice> notices{};
    std::vector<question> questions{};  ///< of others, not yet answered
    std::vector<answer> answers{};      ///< the latest from each peer and context
    int ranks_left = 0;                 ///< on rank 0
    bool all_left = false;
    bool any_failed = false;  ///< of those that left

    const abort_notice* find_notice(std::uint64_t context) const {
        if (notices.empty()) return nullptr;
        auto found = notices.find(context);
        if (found == notices.end()) found = notices.find(every_context);
        return found == notices.end() ? nullptr : &found->second;
    }

    /// What has ended a context, in ranks of this endpoint, where an error in ranks of a subgroup tells of it.
    std::optional<abort_notice> origin_of(const abort_notice& told) const {
        for (const auto& [context, notice] : notices)
            if (rill::detail::same_failure(notice, told)) return notice;
        return std::nullopt;
    }

    void learn(rank_t peer, std::uint64_t context, const call_signature& call) {
        for (answer& known : answers)
            if (known.peer == peer && known.context == context) {
                if (known.call.number < call.number) known.call = call;
                return;
            }
        answers.push_back({peer, context, call});
    }
    std::optional<call_signature> told(rank_t peer, std::uint64_t context, std::uint64_t number) const {
        for (const answer& known : answers)
            if (known.peer == peer && known.context == context && known.call.number >= number) return known.call;
        return std::nullopt;
    }

    void remember(const question& asked) {
        if (std::find(questions.begin(), questions.end(), asked) == questions.end()) questions.push_back(asked);
    }

    void forget(std::uint64_t context) {
        std::erase_if(questions, [=](const question& q) { return q.context == context; });
        std::erase_if(answers, [=](const answer& a) { return a.context == context; });
    }
};

}  // namespace rill::inline RILL_ABI::mpi::detail
