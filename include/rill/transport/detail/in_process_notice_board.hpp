#pragma once

#include <rill/core/chain.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/transport/detail/failures.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// The notices that ended contexts. Any thread may add and look up notices; a look-up costs one load while there is
/// none. `goes_on`: the rank that asks monitors, and a notice of all contexts ends none there.
class notice_board {
  public:
    bool is_empty() const { return count_.load(std::memory_order_acquire) == 0; }

    struct added {
        const abort_notice& holds;  ///< stays as it is, as long as the board
        bool is_new;
    };
    /// Adds a notice unless its context has one; a notice of all contexts counts for each context. Returns the notice
    /// that holds, and whether it is this one.
    added add(const abort_notice& notice, bool goes_on) {
        const std::lock_guard lock(mutex_);
        if (const abort_notice* first = find({notice.context, notice.first_tag}, goes_on)) return {*first, false};
        const abort_notice& kept = notices_.add(notice);
        count_.fetch_add(1, std::memory_order_release);
        return {kept, true};
    }

    std::optional<abort_notice> of(channel on, bool goes_on) { return is_empty() ? std::nullopt : found(on, goes_on); }

    /// Finds the notice of the failure that `told` reports in ranks of a subgroup, so that ranks of this world are
    /// known.
    std::optional<abort_notice> origin_of(const abort_notice& told) {
        const std::lock_guard lock(mutex_);
        for (const abort_notice& notice : notices_)
            if (rill::detail::same_failure(notice, told)) return notice;
        return std::nullopt;
    }

  private:
    [[gnu::noinline]] std::optional<abort_notice> found(channel on, bool goes_on) {
        const std::lock_guard lock(mutex_);
        const abort_notice* first = find(on, goes_on);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }
    const abort_notice* find(channel on, bool goes_on) const {
        for (const std::uint64_t context : {on.context, every_context}) {
            if (goes_on && context == every_context) continue;
            for (const abort_notice& notice : notices_)
                if (notice.context == context && notice.ends(on.tag)) return &notice;
        }
        return nullptr;
    }

    std::mutex mutex_;
    chain<abort_notice> notices_;  ///< in order
    std::atomic<int> count_{0};
};

}}}  // namespace rill::RILL_ABI::in_process::detail
