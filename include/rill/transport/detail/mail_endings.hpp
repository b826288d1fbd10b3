#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/mail_waiting.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Ends operations and runs, after success or failure, with the same outcome on all ranks.
template <class Port>
class endings : public waiting<Port> {
    using base = waiting<Port>;

  public:
    using base::chosen, base::rank, base::size, base::through;

    /// Aborts a context. Rank 0 says which notice was the first, or the lowest rank that is still there. If it does not
    /// answer, this rank reports to all others after half of the timeout, and at its end decides itself, for the lowest
    /// culprit that it knows. No two ranks that read their notes decide differently: a rank that failed later learns of
    /// the decision before its own timeout ends.
    abort_notice abort(const abort_notice& given) {
        const abort_notice notice = travelling(given);
        guard lock(mutex_);
        try {
            if (alive_) agree_on(lock, notice);
        } catch (const error&) {  // the port has failed: the other ranks may not learn why
        }
        const abort_notice* const first = office_.knowledge().first_before(notice);
        return first != nullptr ? *first : notice;
    }
    /// Looks at all notes that have come first: who begins an operation hears of a failure of before, and rank 0 tells
    /// the others, instead of taking part by what the failed rank had already sent.
    std::optional<abort_notice> aborted(std::uint64_t context) {
        const guard lock(mutex_);
        while (alive_ && step()) {
        }
        const abort_notice* const first = find_notice(context);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// Calls the body as this rank's part of a run and tells all ranks how it ended. An exception ends the run on all
    /// ranks but those that monitor: these are told that this rank has ended.
    ///
    /// Returns when all ranks have ended; rethrows the exception of this rank's body, or else throws what ended the
    /// run. After an exception it does not wait for ranks that go on.
    void run(function_ref<void()> body) {
        std::exception_ptr thrown;
        try {
            body();
        } catch (const typename Port::library_error& caught) {
            tell_if_possible(caught.notice());
            throw;
        } catch (...) {
            thrown = std::current_exception();
            abort_notice notice = rill::detail::notice_of_thrown(rank(), [this](const abort_notice& told) {
                const guard lock(mutex_);
                return office_.knowledge().origin_of(told);
            });
            if (notice.culprit == no_rank) notice.culprit = rank();
            fail(notice);
        }
        leave();
        const auto failed = await_all_left();
        if (thrown) std::rethrow_exception(thrown);
        if (failed) throw_error(*failed);
    }
    /// Tells the others that this rank has ended.
    void leave() {
        const guard lock(mutex_);
        require_alive();
        if (!office_.knowledge().failure) office_.depart();
        office_.leave();
    }
    /// Waits until all ranks have left; returns the notice that ended the run, if another rank has failed. After a
    /// failure, it waits only for a limited time.
    std::optional<abort_notice> await_all_left() {
        guard lock(mutex_);
        const control& known = office_.knowledge();
        const auto failed = [&] { return known.failure || find_notice(every_context) != nullptr; };
        const bool is_told_all = !known.monitors && !office_.takes_newcomers();
        office_.watch_leaving();
        const auto all_left = [&] {
            return office_.have_all_left(failed()) && (!known.any_failed || failed() || !is_told_all);
        };
        wait_regardless(lock, deadline::never, [&] { return failed() || all_left(); });
        wait_regardless(lock, Port::now() + chosen().failure_timeout, all_left);
        if (known.failure || !failed() || (office_.have_all_left(false) && !known.any_failed)) return std::nullopt;
        return *find_notice(every_context);
    }

  protected:
    using base::alive_, base::mutex_, base::office_, base::turns_;
    using base::outlast, base::require_alive, base::step, base::wait_regardless;
    using typename base::guard;

    using waiting<Port>::waiting;
    ~endings() = default;

    /// Waits until `done()`: the port no longer uses the user's memory for a message to or from `peer`. If that takes
    /// too long, ends the job: the memory can be neither given back nor kept.
    template <class Done>
    void settle(guard& lock, rank_t peer, std::uint64_t context, Done&& done) noexcept {
        const auto is_free = [&] { return office_.free_memory_for(peer), done(); };
        if (outlast(lock, Port::now() + chosen().failure_timeout, is_free)) return;
        const abort_notice* const failed = find_notice(context);
        std::fprintf(stderr,
                     "rill: rank %d ends the job: %s moves a message between its memory and rank %d, which does not "
                     "go on with it for %g s%s%s\n",
                     rank(), Port::name, peer, chosen().failure_timeout.seconds(), failed == nullptr ? "" : " after ",
                     failed == nullptr ? "" : failed->reason.c_str());
        through().end_job();
    }

  private:
    /// The body of this rank has thrown: ends all contexts of the ranks that do not monitor. `leave` tells the others.
    void fail(const abort_notice& given) {
        {
            const guard lock(mutex_);
            office_.knowledge().failure = travelling(given);
            office_.knowledge().monitors = false;  // this rank does not go on
            if (office_.do_all_others_go_on()) return;
        }
        abort(given);
    }
    /// Used when the port itself has failed: tries to tell the other ranks, and waits for nothing.
    void tell_if_possible(abort_notice notice) noexcept {
        notice.context = every_context;
        notice.culprit = rank();
        try {
            fail(notice);
            leave();
        } catch (...) {
        }
    }

    const abort_notice* find_notice(std::uint64_t context) {
        return office_.knowledge().find_notice({context, last_tag});
    }

    void agree_on(guard& lock, const abort_notice& notice) {
        const packed_notice report(notice);
        const auto is_known = [&] { return office_.knowledge().first_before(notice) != nullptr; };
        const duration half{chosen().abort_timeout.ns / 2};
        if (is_known()) return;
        const deadline first_half = Port::now() + half;
        rank_t judge = no_rank;
        while (judge != office_.judging() && Port::now() < first_half.at) {
            judge = office_.judging();
            office_.tell(judge, {.kind = note::report}, report.view());
            const auto is_over = [&] { return is_known() || office_.judging() != judge; };
            if (outlast(lock, first_half, is_over) && is_known()) return;
        }
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != judge) office_.tell(peer, {.kind = note::report}, report.view());
        if (outlast(lock, Port::now() + half, is_known)) return;
        office_.decide(notice.context);
    }
};

}}}  // namespace rill::RILL_ABI::mail
