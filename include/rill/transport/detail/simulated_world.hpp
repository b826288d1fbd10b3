#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_calls.hpp>
#include <rill/transport/detail/simulated_control.hpp>
#include <rill/transport/detail/simulated_links.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>

#include <cstddef>
#include <cstdint>
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
          links_(chosen) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    traffic counted(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)].counted; }

    // --- messages

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        parcel& p = offices_.accept(source, receiver, on);
        p.pieces = pieces;
        p.handed_over = false;
        p.sender_holds = true;
        send(p);
        return p;
    }

    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
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
        if (p.at == parcel::stage::done)
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

    report run() {
        scheduler_.run(*this);
        rethrow();
        return {.elapsed = now() - time_point{},
                .events = scheduler_.events(),
                .messages = messages_,
                .bytes = bytes_,
                .trace_hash = scheduler_.trace()};
    }

    void arrive(appointment& due) {
        parcel& p = static_cast<parcel&>(due);
        scheduler_.record(2U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver));
        deliver(p);
    }

  private:
    struct rank_state {
        wait_list receiving;
        wait_list posting;  ///< to this rank, which has no room
        wait_list inquiring;
        parcel_list<parcel::of_receiver> mail;  ///< under way or arrived
        std::size_t handed_over = 0;            ///< bytes of that mail that this rank must store
        traffic counted{};
    };

    rank_state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    // --- the way of a message

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
            scheduler_.future().add(p, links_.arrival(now(), p.source, p.receiver, size));
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
    call_book calls_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace rill::inline RILL_ABI::simulated::detail
