#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/detail/simulated_who_waits.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// Waits, and the notices that end them early. Each rank knows those that have reached it.
class control {
  public:
    control(int ranks, const network& chosen)
        : scheduler_(chosen.stack_bytes, chosen.longest.ns > 0 ? time_point{} + chosen.longest : deadline::never.at),
          poll_(chosen.poll),
          monitors_(static_cast<std::size_t>(ranks)),
          known_(chosen.control == control_plane::ideal ? 1 : static_cast<std::size_t>(ranks)) {}

    time_point now() const { return scheduler_.now(); }
    scheduler& activities() { return scheduler_; }
    const strand& current() const { return scheduler_.current(); }

    bool passed(deadline until) const { return until.at <= now(); }

    /// Lets the time of a poll that finds nothing pass.
    void poll() noexcept {
        wait_record looking{.kind = waits_for::time, .ends_with_context = false};
        scheduler_.wait(idle_, looking, now() + poll_);
    }

    void throw_if_killed() const {
        if (scheduler_.is_killed()) throw rank_killed{scheduler_.current().rank};
    }

    /// Throws what has ended the channel, or the current activity.
    void throw_if_ended(channel on) const {
        throw_if_killed();
        const strand& own = scheduler_.current();
        if (has_notices_)
            if (const abort_notice* notice = find_notice(own.rank, on)) throw_error(*notice);
        if (own.stopped) rill::detail::throw_stopped(own.rank, on.context);
    }

    /// True when called, false when `until` has passed.
    bool wait(wait_list& where, wait_record what, deadline until) {
        return concluded(scheduler_.wait(where, what, until), what);
    }

    void sleep_until(time_point instant) {
        throw_if_ended({every_context});
        if (instant <= now()) return;
        wait(idle_, {.kind = waits_for::time}, instant);
    }

    /// Ends all present and future waits of an activity.
    void stop(strand& activity) noexcept {
        activity.stopped = true;
        end_wait(activity);
    }
    void end_wait(strand& activity) noexcept {
        if (activity.waiting != nullptr && activity.waiting->ends_with_context) scheduler_.call(activity, wake::ended);
    }
    void wait_for_end(strand& activity) noexcept {
        wait_record what{.kind = waits_for::activity, .ends_with_context = false};
        while (activity.running) scheduler_.wait(activity.joining, what, deadline::never);
    }

    std::optional<abort_notice> aborted(rank_t self, std::uint64_t context) const {
        const abort_notice* first = find_notice(self, {context, last_tag});
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// Called when every activity waits for another, or when the run is overdue: makes all waits throw `deadlock`.
    void nothing_left() {
        const char* const what = scheduler_.is_overdue() ? "no end after " : "deadlock at ";
        deadlock_ = {.context = every_context,
                     .kind = failure::deadlock,
                     .reason = what + std::to_string(now().ns) + " ns: " + who_waits(scheduler_.strands())};
        for (std::size_t rank = 0; rank < known_.size(); ++rank)
            if (std::find(known_[rank].begin(), known_[rank].end(), &*deadlock_) == known_[rank].end())
                learn(static_cast<rank_t>(rank), *deadlock_);
        if (scheduler_.ready()) return;
        // The waits left are those that no abort ends, as of a sender whose reader itself waits for that sender.
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr) scheduler_.call(each, wake::ended);
    }

  protected:
    bool concluded(wake outcome, const wait_record& what) const {
        if (outcome == wake::ended) throw_if_ended(what.on);
        return outcome == wake::called;
    }

    /// Rethrows the exception that ended the run, if any.
    void rethrow() const {
        if (thrown_ != nullptr) std::rethrow_exception(thrown_);
        if (deadlock_) throw_error(*deadlock_);
    }

    /// The notice that ends a channel on a rank, or null.
    const abort_notice* find_notice(rank_t rank, channel on) const {
        const abort_notice* of_all = nullptr;
        for (const abort_notice* const each : known_[list_of(rank)]) {
            if (is_ignored(rank, *each)) continue;
            if (each->context == on.context && each->ends(on.tag)) return each;
            if (each->context == every_context && of_all == nullptr) of_all = each;
        }
        return of_all;
    }

    /// Ends the waits of a rank, or of all if control is ideal, by a notice that must stay where it is.
    void learn(rank_t rank, const abort_notice& notice) {
        known_[list_of(rank)].push_back(&notice);
        has_notices_ = true;
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr && each.waiting->ends_with_context && list_of(each.rank) == list_of(rank) &&
                !is_ignored(each.rank, notice) &&
                (notice.context == every_context ||
                 (each.waiting->on.context == notice.context && notice.ends(each.waiting->on.tag))))
                scheduler_.call(each, wake::ended);
    }
    /// Whether a rank asks what becomes of others, and goes on without them.
    void set_monitors(rank_t rank, bool does) { monitors_[static_cast<std::size_t>(rank)] = does; }
    /// A failure of another rank, which ends all contexts, ends none of a rank that monitors.
    bool is_ignored(rank_t rank, const abort_notice& notice) const {
        return notice.context == every_context && monitors_[static_cast<std::size_t>(rank)] &&
               (!deadlock_ || &notice != &*deadlock_);
    }
    void forget_notices(rank_t rank) { known_[list_of(rank)].clear(); }
    const std::vector<const abort_notice*>& notices_of(rank_t rank) const { return known_[list_of(rank)]; }

    /// Makes a notice of the exception being handled, in ranks of this world even if its error has ranks of a subgroup.
    abort_notice notice_of_current(rank_t rank) const {
        abort_notice notice = rill::detail::notice_of_thrown(rank, [&](const abort_notice& told) {
            for (const abort_notice* const each : notices_of(rank))
                if (rill::detail::same_failure(*each, told)) return std::optional(*each);
            return std::optional<abort_notice>();
        });
        if (notice.culprit == no_rank && notice.kind != failure::deadlock) notice.culprit = rank;
        return notice;
    }

    /// The exception being handled has left the body of `rank`, where the notice that holds blames `culprit`.
    void remember_thrown(rank_t rank, rank_t culprit) {
        if (thrown_ != nullptr && (culprit_threw_ || culprit != rank)) return;
        thrown_ = std::current_exception();
        culprit_threw_ = culprit == rank;
    }

    scheduler scheduler_;

  private:
    std::size_t list_of(rank_t rank) const { return known_.size() == 1 ? 0 : static_cast<std::size_t>(rank); }

    duration poll_;
    std::vector<bool> monitors_;                           ///< by rank
    std::vector<std::vector<const abort_notice*>> known_;  ///< of each rank; one list for all if control is ideal
    bool has_notices_ = false;
    std::optional<abort_notice> deadlock_;
    wait_list idle_;  ///< activities that only time wakes
    std::exception_ptr thrown_{};
    bool culprit_threw_ = false;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
