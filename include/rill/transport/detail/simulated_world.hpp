#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/detail/simulated_courier.hpp>
#include <rill/transport/detail/simulated_mail.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_rank_state.hpp>
#include <rill/transport/detail/simulated_report.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The shared state of the ranks: their mail, the calls that they have entered, and their lives.
class world : public courier {
  public:
    world(int ranks, const network& chosen)
        : courier(std::max(ranks, chosen.seats), chosen), starting_(ranks), computing_(chosen.computing) {}

    int restarts(rank_t rank) { return at(rank).lives - 1; }

    // --- messages

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        die_if_due(source);
        return mail::post(source, receiver, on, pieces);
    }
    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
        die_if_due(source);
        return mail::post(source, receiver, on, std::move(bytes), until);
    }

    // --- control

    std::uint64_t next_context(rank_t self, std::uint64_t key) { return at(self).calls.next_context(key); }

    void close(rank_t self, std::uint64_t context) {
        if (scheduler_.is_killed()) return;
        at(self).calls.close(context);
        forget_heard(self, context);
        std::erase_if(at(self).monitored, [&](channel each) { return each.context == context; });
        at(self).mail.for_each([&](parcel& p) {
            if (p.on.context == context) drop(p);
        });
        at(self).posting.for_each([&](strand& s) {
            if (s.waiting->on.context == context) admit(at(self), s);  // their messages are dropped
        });
    }

    // --- the run

    /// Calls `main(self)` as each rank, and again when a rank is restarted.
    report run(strand::job main) {
        main_ = main;
        for (rank_t rank = 0; rank < size(); ++rank) take_seat(rank);
        scheduler_.run(*this);
        rethrow();
        report all{.elapsed = now() - time_point{},
                   .events = scheduler_.events(),
                   .messages = messages_,
                   .bytes = bytes_,
                   .trace_hash = scheduler_.trace(),
                   .links = links_.report()};
        for (rank_t rank = 0; rank < size(); ++rank)
            all.ranks.push_back({.computing = at(rank).computing,
                                 .waiting = scheduler_.waited(rank),
                                 .ended = at(rank).ended - time_point{},
                                 .lives = at(rank).lives});
        return all;
    }
    /// Called when the body of a rank has ended, by itself or because the rank was killed.
    void ended(rank_t rank) {
        rank_state& own = at(rank);
        if (own.is_alive) own.ended = now();
        if (own.is_alive) tell_of_life(letter::about::end, rank);
        if (std::exchange(own.begins_anew, false)) schedule(rank, now());
    }

    void compute(rank_t self, double work) {
        throw_if_ended({every_context});
        RILL_EXPECTS(work >= 0, "simulated: the work of a computation must not be negative");
        if (!computing_) return;
        rank_state& own = at(self);
        const auto& faults = links_.faults();
        const double factor = faults.is_idle() ? 1 : faults.slowness(self, now() - time_point{}, own.posted);
        duration time = computing_(self, own.computations++, work);
        if (factor != 1) time = rill::detail::duration_of(time.seconds() * factor);
        const time_point start = now();
        sleep_until(start + time);
        own.computing = own.computing + (now() - start);
    }

    /// Carries out the planned end of a rank, or its restart.
    void fail_by_plan(appointment& due) {
        const rank_t rank = static_cast<turning_point&>(due).rank;
        scheduler_.record(4U, static_cast<unsigned>(rank));
        rank_state& own = at(rank);
        if (own.is_alive) {
            if (own.main->running) end_life(rank);  // otherwise its body has returned before
            return;
        }
        if (own.main != nullptr &&
            own.main->running) {  // its last life still waits for a peer that reads from its memory
            own.begins_anew = true;
            return;
        }
        if (own.main != nullptr) scheduler_.reuse(*own.main);
        begin_life(rank);
        catch_up(rank);
        scheduler_.expects_one_less();
    }

  private:
    // --- life and death of a rank

    void begin_life(rank_t rank) {
        rank_state& own = at(rank);
        own.is_alive = true;
        own.posted = 0;
        ++own.lives;
        own.main = &scheduler_.start(rank, main_);
        const fault* const end = links_.faults().end_of(rank, life(rank));
        if (end != nullptr && end->skipped == 0) schedule(rank, std::max(now(), time_point{} + end->begins));
        tell_of_life(letter::about::arrival, rank);
    }

    /// Begins at once, when the plan says so, or never.
    void take_seat(rank_t rank) {
        if (const fault* const later = links_.faults().start_of(rank)) {
            schedule(rank, time_point{} + later->begins);
            scheduler_.expects_one_more();
        } else if (rank < starting_) {
            begin_life(rank);
        }
    }

    std::uint64_t life(rank_t rank) { return static_cast<std::uint64_t>(at(rank).lives - 1); }

    void schedule(rank_t rank, time_point when) {
        auto& planned = at(rank).next_fault;
        if (planned == nullptr) planned = std::make_unique<turning_point>();
        planned->rank = rank;
        scheduler_.future().add(*planned, when);
    }

    /// Counts this rank's next post and ends the rank before it where the plan says so.
    void die_if_due(rank_t self) {
        throw_if_killed();
        rank_state& own = at(self);
        ++own.posted;
        if (links_.faults().is_idle()) return;
        const fault* const end = links_.faults().end_of(self, life(self));
        if (end == nullptr || end->skipped == 0 || !end->has_begun(now() - time_point{}, own.posted)) return;
        end_life(self);
        throw_if_killed();
    }

    void end_life(rank_t rank) {
        rank_state& own = at(rank);
        own.is_alive = false;
        own.ended = now();
        forget_control(rank);
        for (strand& each : scheduler_.strands())
            if (each.running && each.rank == rank) {
                each.killed = true;
                end_wait(each);
            }
        tell_of_life(letter::about::end, rank);
        while (parcel* const p = own.mail.first()) {
            if (p->at != parcel::stage::arrived) links_.lose(p->source, rank);
            remove(*p);
            lose(*p);
        }
        if (const fault* const again = links_.faults().restart_after(rank, life(rank))) {
            schedule(rank, now() + again->begins);
            scheduler_.expects_one_more();
        }
    }

    int starting_;
    compute_model computing_;
    strand::job main_{};
};

}}}  // namespace rill::RILL_ABI::simulated::detail
