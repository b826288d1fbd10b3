#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/same_failure.hpp>
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

/// Waits, and the notices that end them early. Notices take no virtual time.
class control {
  public:
    explicit control(const network& chosen)
        : scheduler_(chosen.stack_bytes, chosen.longest.ns > 0 ? time_point{} + chosen.longest : deadline::never.at),
          poll_(chosen.poll) {}

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
        if (!notices_.empty())
            if (const abort_notice* notice = find_notice(on)) throw_error(*notice);
        const strand& own = scheduler_.current();
        if (own.stopped)
            throw_error({.context = on.context,
                         .culprit = own.rank,
                         .reason = "rank " + std::to_string(own.rank) +
                                   " did not wait for one of its activities because of an exception"});
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

    /// Aborts a context and returns the notice that holds: the first one of a context, where a notice of all contexts
    /// counts for each. A killed rank's notice is ignored.
    abort_notice abort(const abort_notice& notice) {
        if (scheduler_.is_killed()) return notice;
        if (const abort_notice* first = find_notice({notice.context, notice.first_tag})) return *first;
        notices_.push_back(notice);
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr && each.waiting->ends_with_context &&
                (notice.context == every_context ||
                 (each.waiting->on.context == notice.context && notice.ends(each.waiting->on.tag))))
                scheduler_.call(each, wake::ended);
        return notice;
    }
    std::optional<abort_notice> aborted(std::uint64_t context) const {
        const abort_notice* first = find_notice({context, last_tag});
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// Aborts all contexts because the exception being handled has left the body of `rank`.
    void fail(rank_t rank) {
        const rank_t culprit = abort(notice_of_current(rank)).culprit;
        if (thrown_ != nullptr && (culprit_threw_ || culprit != rank)) return;
        thrown_ = std::current_exception();
        culprit_threw_ = culprit == rank;
    }

    /// Called when every activity waits for another, or when the run is overdue: makes all waits throw `deadlock`.
    void nothing_left() {
        const char* const what = scheduler_.is_overdue() ? "no end after " : "deadlock at ";
        abort({.context = every_context,
               .kind = failure::deadlock,
               .reason = what + std::to_string(now().ns) + " ns: " + who_waits(scheduler_.strands())});
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
        if (const abort_notice* end = find_notice({every_context}); end != nullptr && end->kind == failure::deadlock)
            throw_error(*end);
    }

    scheduler scheduler_;

  private:
    const abort_notice* find_notice(channel on) const {
        const abort_notice* of_all = nullptr;
        for (const abort_notice& each : notices_) {
            if (each.context == on.context && each.ends(on.tag)) return &each;
            if (each.context == every_context) of_all = &each;
        }
        return of_all;
    }

    /// Makes a notice of the exception being handled, in ranks of this world even if its error has ranks of a subgroup.
    abort_notice notice_of_current(rank_t rank) const {
        abort_notice notice{.context = every_context, .culprit = rank, .reason = {}};
        try {
            throw;
        } catch (const error& caught) {
            const auto origin = std::find_if(notices_.begin(), notices_.end(), [&](const abort_notice& each) {
                return rill::detail::same_failure(each, caught.notice());
            });
            notice = origin == notices_.end() ? caught.notice() : *origin;
            notice.context = every_context;
            if (notice.culprit == no_rank && notice.kind != failure::deadlock) notice.culprit = rank;
        } catch (const std::exception& caught) {
            notice.reason = "rank " + std::to_string(rank) + " failed: " + caught.what();
        } catch (...) {
            notice.reason = "rank " + std::to_string(rank) + " failed: an exception that is no std::exception";
        }
        return notice;
    }

    duration poll_;
    std::vector<abort_notice> notices_;
    wait_list idle_;  ///< activities that only time wakes
    std::exception_ptr thrown_{};
    bool culprit_threw_ = false;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
