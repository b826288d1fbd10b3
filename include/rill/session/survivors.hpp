#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/session/detail/agreement.hpp>
#include <rill/transport/subgroup.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The ranks of a transport that live, and steps that either all of them complete or none.
///
/// A failure can end a collective on one rank after another rank has completed it. Therefore `run` ends each step by an
/// agreement. If all have completed the step, all return. Else all repeat it, without the ranks that have died or left,
/// on a transport whose messages never meet those of an earlier attempt. All members must make this object at the same
/// point of their program, and call `run` equally often.
///
/// Deaths are survived at any time, also of several ranks and during the agreement; over MPI the end of a process ends
/// the job, and only a rank that throws is survived. A rank is excluded only if it does not come to an agreement within
/// two timeouts, or if it throws. A rank that was restarted must not come back. If a network falls apart, each part
/// goes on without the others.
///
/// Cost of an agreement: each rank asks each member what it has announced; no messages in process, nor simulated where
/// control is ideal.
template <Transport Net>
class survivors {
  public:
    /// `timeout`: at least that of the groups that the steps make. It is also the longest time that a rank may spend
    /// outside of collectives. `most_repeats`: how often in a row the same members repeat a step. `net` must outlive
    /// this object.
    explicit survivors(Net& net, duration timeout = seconds(60), int most_repeats = 3)
        : net_(&net),
          timeout_(timeout),
          most_repeats_(most_repeats),
          session_(net.next_context(mix64(fingerprint("survivors"), epoch_of(net)))) {
        detail::require_option(timeout.ns > 0, "survivors: timeout", timeout.seconds(), "above 0 s", net.rank());
        detail::require_option(most_repeats >= 0, "survivors: most_repeats", most_repeats, "at least 0", net.rank());
        if constexpr (MonitoredTransport<Net>) net.monitor({session_, 0});  // a death then ends no other rank
        begin(rill::view::all(net));
    }
    survivors(const survivors&) = delete;
    survivors& operator=(const survivors&) = delete;
    ~survivors() { net_->close(session_); }

    /// Calls `body(members)` on all members until it has returned on each of them that lives. `members` is a transport
    /// of the members alone, the same in each step until a step is repeated.
    ///
    /// `body` makes the same calls on all members. When it is called again, it must set anew whatever it changes: the
    /// output of an attempt that failed is unspecified.
    ///
    /// A step is repeated after an error that another rank has caused, a `timeout` or a `protocol_error`. Any other
    /// exception that leaves `body` is thrown at once, and the others go on without this rank: it must not call `run`
    /// again.
    ///
    /// Errors: `timeout` if the others have taken this rank for dead; what `body` has thrown, or a `peer_failure`, if
    /// the step was repeated in vain.
    template <class Body>
    void run(Body&& body) {
        for (int repeats = 0;; ++repeats) {
            detail::agreement<Net> end(*net_, session_, ++number_);
            const std::exception_ptr failed = attempt(body, end);
            const detail::verdict all = end.reach(view().members, timeout_ * 2);
            if (all.is_done && failed == nullptr) return;
            if (all.is_done || detail::contains(all.gone, net_->rank())) throw_excluded();
            begin(next_view(all.gone));
            if (!all.gone.empty()) repeats = -1;
            if (repeats >= most_repeats_) give_up(failed);
        }
    }

    /// The transport that `run` hands to the next step.
    subgroup<Net>& net() { return *made_.back(); }
    /// Who lives. Its epoch grows with each repetition: what was made on the transport of an earlier one must be made
    /// anew.
    const rill::view& view() const { return made_.back()->view(); }

  private:
    /// Runs the body once. Returns what ended it if it is to be repeated, and null if it has returned.
    template <class Body>
    std::exception_ptr attempt(Body& body, detail::agreement<Net>& end) {
        std::exception_ptr failed;
        try {
            body(net());
        } catch (const error& thrown) {
            if (net_->aborted(every_context)) throw;
            if (is_own(thrown.notice())) leave(end);
            failed = std::current_exception();
        } catch (...) {
            leave(end);
        }
        end.say(failed == nullptr ? detail::outcome::done : detail::outcome::failed);
        return failed;
    }

    /// Tells the others that this rank leaves, and rethrows what has ended the body.
    [[noreturn]] void leave(detail::agreement<Net>& end) const {
        end.leave(view().members, timeout_ * 2);
        throw;
    }

    /// Whether this rank has caused the failure and would fail again. A timeout or a bad frame does not count: the
    /// other end of the link may have caused it.
    bool is_own(const abort_notice& notice) {
        const bool is_of_program = notice.kind == failure::exception || notice.kind == failure::mismatch ||
                                   notice.kind == failure::invalid_value;
        return is_of_program && notice.culprit == net().rank();
    }

    rill::view next_view(const std::vector<rank_t>& gone) const {
        rill::view next = view();
        ++next.epoch;
        std::erase_if(next.members, [&](rank_t member) { return detail::contains(gone, member); });
        return next;
    }

    /// Earlier transports are kept, because what was made on them may still be in use.
    void begin(rill::view next) {
        const std::string name = text_of({"survivors ", session_});
        made_.push_back(std::make_unique<subgroup<Net>>(*net_, std::move(next), name));
    }

    [[noreturn]] void throw_excluded() const {
        throw timeout({.context = session_,
                       .operation = number_,
                       .kind = failure::timeout,
                       .culprit = net_->rank(),
                       .reason = text_of({"survivors: the others have gone on without rank ", net_->rank(),
                                          ", which did not take part in agreement ", number_, " within ",
                                          (timeout_ * 2).seconds(), " s"})});
    }

    [[noreturn]] void give_up(const std::exception_ptr& failed) const {
        if (failed != nullptr) std::rethrow_exception(failed);
        throw peer_failure(
            {.context = session_,
             .operation = number_,
             .reason = text_of({"survivors: rank ", net_->rank(),
                                " completed a step in which other ranks failed, also when it was repeated ",
                                most_repeats_, " times: do all ranks make the same calls?"})});
    }

    Net* net_;
    duration timeout_;
    int most_repeats_;
    std::uint64_t session_;
    std::uint64_t number_ = 0;  ///< of the latest agreement
    std::vector<std::unique_ptr<subgroup<Net>>> made_;
};

}}  // namespace rill::RILL_ABI
