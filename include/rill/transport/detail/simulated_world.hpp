#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/detail/simulated_calls.hpp>
#include <rill/transport/detail/simulated_control.hpp>
#include <rill/transport/detail/simulated_links.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_report.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI::simulated::detail {

/// What the ranks share: the mail between them on top of what they all hear and wait for.
class world : public control {
  public:
    world(int ranks, const network& chosen)
        : control(chosen),
          mailbox_bytes_(chosen.mailbox_bytes),
          ranks_(static_cast<std::size_t>(ranks)),
          links_(ranks, chosen),
          computing_(chosen.computing) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    int restarts(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)].lives - 1; }
    traffic counted(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)].counted; }

    // --- messages

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        die_if_due(source);
        parcel& p = offices_.accept(source, receiver, on);
        p.pieces = pieces;
        p.handed_over = false;
        p.sender_holds = true;
        send(p);
        return p;
    }

    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
        die_if_due(source);
        if (!reserve_room(receiver, on, bytes.size(), until)) return false;
        parcel& p = offices_.accept(source, receiver, on);
        p.owned = std::move(bytes);
        bytes.clear();
        p.pieces = byte_view(p.owned);
        p.handed_over = true;
        p.sender_holds = false;
        send(p);
        return true;
    }

    /// Null when `until` has passed.
    parcel* receive(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on.context);
        if (parcel* p = offices_.first(self, peers, on)) return &take(*p);
        return await(self, peers, on, until);
    }

    parcel* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on.context);
        parcel* newest = offices_.first(self, peers, on);
        if (newest == nullptr) return await(self, peers, on, until);
        while (parcel* next = offices_.next(*newest, peers)) drop(*std::exchange(newest, next));
        return &take(*newest);
    }

    /// By the receiver, who will not read the message again.
    void release(parcel& p) noexcept {
        p.at = parcel::stage::done;
        scheduler_.call_all(p.reading);
        if (!p.sender_holds) offices_.give_back(p);
    }

    /// By the sender, who forgets the message: withdraws it if nobody has taken it.
    void let_go(parcel& p) noexcept {
        p.sender_holds = false;
        if (p.at == parcel::stage::done || p.at == parcel::stage::lost)
            offices_.give_back(p);
        else if (p.at != parcel::stage::taken)
            drop(p);
    }

    bool wait_until_read(parcel& p, deadline until) {
        if (p.at == parcel::stage::done) return true;
        throw_if_ended(p.on.context);
        if (passed(until)) return poll(), p.at == parcel::stage::done;
        return wait(p.reading, {.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on}, until);
    }

    void settle(parcel& p) noexcept {
        if (p.at != parcel::stage::taken) return;
        wait_record what{.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on, .ends_with_context = false};
        scheduler_.wait(p.reading, what, deadline::never);
    }

    // --- control

    void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        throw_if_killed();
        calls_.announce(self, context, call);
        for (strand* s = at(self).inquiring.first(); s != nullptr;) {
            strand* const after = s->after;
            if (s->waiting->on.context == context && s->waiting->amount == call.number) scheduler_.call(*s);
            s = after;
        }
    }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        throw_if_ended(context);
        if (const auto entered = calls_.entered(peer, context, number)) return entered;
        wait_record what{
            .kind = waits_for::announcement, .peers = {&peer, 1}, .on = {.context = context}, .amount = number};
        if (passed(until))
            poll();
        else
            wait(at(peer).inquiring, what, until);
        return calls_.entered_or_later(peer, context, number);
    }

    std::uint64_t next_context(rank_t self, std::uint64_t key) { return calls_.next_context(self, key); }

    void close(rank_t self, std::uint64_t context) {
        if (scheduler_.is_killed()) return;
        calls_.close(self, context);
        for (parcel* p = at(self).mail.first(); p != nullptr;) {
            parcel* const after = at(self).mail.after(*p);
            if (p->on.context == context) drop(*p);
            p = after;
        }
        for (strand* s = at(self).posting.first(); s != nullptr;) {
            strand* const after = s->after;
            if (s->waiting->on.context == context) admit(at(self), *s);  // what they post is dropped
            s = after;
        }
    }

    // --- the run

    /// `main(self)` is called as each rank, and again when a rank begins anew.
    report run(strand::job main) {
        main_ = main;
        for (rank_t rank = 0; rank < size(); ++rank) begin_life(rank);
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
    void ended(rank_t rank) { at(rank).ended = now(); }

    void compute(rank_t self, double work) {
        throw_if_ended(every_context);
        RILL_EXPECTS(work >= 0, "simulated: nobody computes less than nothing");
        if (!computing_) return;
        rank_state& own = at(self);
        const double factor = links_.faults().slowness(self, now() - time_point{});
        duration time = computing_(self, own.computations++, work);
        if (factor != 1) time = rill::detail::duration_of(time.seconds() * factor);
        const time_point start = now();
        sleep_until(start + time);
        own.computing = own.computing + (now() - start);
    }

    void arrive(appointment& due) {
        parcel& p = static_cast<parcel&>(due);
        scheduler_.record(2U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver));
        if (std::exchange(p.queues, false)) {
            const time_point taken = links_.land(now(), p.receiver, p.tail, p.pieces.size_bytes());
            if (taken > now()) return scheduler_.future().add(p, taken);
        }
        deliver(p);
    }

    /// The end of a rank that is planned, or its new beginning.
    void fail_by_plan(appointment& due) {
        const rank_t rank = static_cast<turn&>(due).rank;
        scheduler_.record(4U, static_cast<unsigned>(rank));
        if (at(rank).is_alive) return end_life(rank);
        if (at(rank).main->running) return scheduler_.future().add(due, now() + nanoseconds(1));
        scheduler_.reuse(*at(rank).main);
        ++at(rank).lives;
        begin_life(rank);
    }

  private:
    /// Of the plan, for one rank.
    struct turn : appointment {
        turn() : appointment(what::fault) {}
        rank_t rank = no_rank;
    };
    struct rank_state {
        wait_list receiving;
        wait_list posting;  ///< to this rank, which has no room
        wait_list inquiring;
        parcel_list<parcel::of_receiver> mail;  ///< under way or arrived
        std::size_t handed_over = 0;            ///< bytes of that mail that this rank must store
        traffic counted{};
        strand* main = nullptr;
        bool is_alive = false;
        int lives = 1;
        std::uint64_t posted = 0;  ///< in this life
        std::uint64_t computations = 0;
        duration computing{};
        time_point ended{};
        std::unique_ptr<turn> next_fault{};
    };

    rank_state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    // --- life and death of a rank

    void begin_life(rank_t rank) {
        rank_state& own = at(rank);
        own.is_alive = true;
        own.posted = 0;
        own.main = &scheduler_.start(rank, main_);
        const fault* const end = links_.faults().end_of(rank, life(rank));
        if (end != nullptr && end->skipped == 0) schedule(rank, std::max(now(), time_point{} + end->begins));
    }

    std::uint64_t life(rank_t rank) { return static_cast<std::uint64_t>(at(rank).lives - 1); }

    void schedule(rank_t rank, time_point when) {
        auto& planned = at(rank).next_fault;
        if (planned == nullptr) planned = std::make_unique<turn>();
        planned->rank = rank;
        scheduler_.future().add(*planned, when);
    }

    /// Where this rank is to end instead of posting its next message.
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
        calls_.forget(rank);
        for (strand& each : scheduler_.strands())
            if (each.running && each.rank == rank) {
                each.killed = true;
                end_wait(each);
            }
        while (parcel* const p = own.mail.first()) {
            remove(*p);
            lose(*p);
        }
        if (const fault* const again = links_.faults().restart_after(rank, life(rank)))
            schedule(rank, now() + again->begins);
    }

    // --- the way of a message

    /// Nobody will get it, and its sender does not learn that.
    void lose(parcel& p) noexcept {
        p.at = parcel::stage::lost;
        if (!p.sender_holds) offices_.give_back(p);
    }

    void send(parcel& p) {
        const std::size_t size = p.pieces.size_bytes();
        traffic& counted = at(p.source).counted;
        counted += {.messages_sent = 1, .bytes_sent = size};
        ++messages_;
        bytes_ += size;
        scheduler_.record(3U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver), size);
        at(p.receiver).mail.push_back(p);
        if (calls_.is_closed(p.receiver, p.on.context))
            drop(p);
        else if (p.source == p.receiver)
            deliver(p);
        else
            transmit(p, size);
    }

    void transmit(parcel& p, std::size_t size) {
        const auto flight = links_.depart(now(), p.source, p.receiver, size);
        const bool is_lost = flight.lost || !at(p.receiver).is_alive;
        if (is_lost) {
            if (!flight.lost) links_.lose(p.source, p.receiver);
            remove(p);
            return lose(p);
        }
        p.tail = flight.tail;
        p.queues = links_.queues_at(p.receiver);
        scheduler_.future().add(p, p.queues ? flight.head : flight.tail);
        if (flight.twice) repeat(p);
    }

    /// Sends a copy behind a message.
    void repeat(const parcel& p) {
        parcel& copy = offices_.accept(p.source, p.receiver, p.on);
        for (const byte_view piece : p.pieces) copy.owned.insert(copy.owned.end(), piece.begin(), piece.end());
        copy.pieces = byte_view(copy.owned);
        copy.handed_over = true;
        copy.sender_holds = false;
        copy.tail = p.tail;
        at(p.receiver).handed_over += copy.owned.size();
        at(p.receiver).mail.push_back(copy);
        scheduler_.future().add(copy, p.tail);
    }

    void deliver(parcel& p) {
        for (strand* s = at(p.receiver).receiving.first(); s != nullptr; s = s->after) {
            wait_record& what = *s->waiting;
            if (what.on != p.on || !contains(what.peers, p.source)) continue;
            what.delivered = &take(p);
            scheduler_.call(*s);
            return;
        }
        offices_.store(p);
    }

    /// Off the way, or out of the mailbox.
    void remove(parcel& p) noexcept {
        if (p.pending()) scheduler_.future().remove(p);
        if (p.at == parcel::stage::arrived) offices_.remove(p);
        rank_state& receiver = at(p.receiver);
        receiver.mail.remove(p);
        if (!p.handed_over) return;
        receiver.handed_over -= p.pieces.size_bytes();
        offer_room(receiver);
    }

    parcel& take(parcel& p) noexcept {
        remove(p);
        p.at = parcel::stage::taken;
        at(p.receiver).counted += {.messages_received = 1, .bytes_received = p.pieces.size_bytes()};
        return p;
    }

    void drop(parcel& p) noexcept {
        remove(p);
        release(p);
    }

    parcel* await(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        if (passed(until)) return poll(), nullptr;
        wait_record what{.kind = waits_for::message, .peers = peers, .on = on};
        return concluded(scheduler_.wait(at(self).receiving, what, until), what) ? what.delivered : nullptr;
    }

    // --- room

    bool fits(const rank_state& receiver, std::size_t bytes) const {
        return receiver.handed_over == 0 ||
               (receiver.handed_over <= mailbox_bytes_ && bytes <= mailbox_bytes_ - receiver.handed_over);
    }

    bool reserve_room(rank_t peer, channel on, std::size_t bytes, deadline until) {
        rank_state& receiver = at(peer);
        if (calls_.is_closed(peer, on.context) || (receiver.posting.empty() && fits(receiver, bytes))) {
            receiver.handed_over += bytes;
            return true;
        }
        if (passed(until)) return poll(), false;
        throw_if_ended(on.context);
        wait_record what{.kind = waits_for::room, .peers = {&peer, 1}, .on = on, .amount = bytes};
        const wake outcome = scheduler_.wait(receiver.posting, what, until);
        if (outcome != wake::called) offer_room(receiver);  // those behind may need less
        return concluded(outcome, what);
    }

    /// Keeps it for those who wait, so that nobody overtakes them.
    void offer_room(rank_state& receiver) noexcept {
        while (strand* next = receiver.posting.first()) {
            if (!fits(receiver, next->waiting->amount)) return;
            admit(receiver, *next);
        }
    }
    void admit(rank_state& receiver, strand& poster) noexcept {
        receiver.handed_over += poster.waiting->amount;
        scheduler_.call(poster);
    }

    std::size_t mailbox_bytes_;
    std::vector<rank_state> ranks_;
    post_office offices_;
    link_table links_;
    compute_model computing_;
    strand::job main_{};
    call_book calls_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace rill::inline RILL_ABI::simulated::detail
