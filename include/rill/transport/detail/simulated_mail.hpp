#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_links.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_rank_state.hpp>
#include <rill/transport/detail/simulated_rooms.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The messages between ranks.
class mail : public rooms {
  public:
    mail(int ranks, const network& chosen) : rooms(ranks, chosen), links_(ranks, chosen) {}

    // --- the sender's side and the receiver's

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
        throw_if_ended(on);
        if (parcel* p = offices_.first(self, peers, on)) return &take(*p);
        return await(self, peers, on, until);
    }

    parcel* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on);
        parcel* newest = offices_.first(self, peers, on);
        if (newest == nullptr) return await(self, peers, on, until);
        while (parcel* next = offices_.next(*newest, peers)) drop(*std::exchange(newest, next));
        return &take(*newest);
    }

    /// Called by the receiver when it will not read the message again.
    void release(parcel& p) noexcept {
        p.at = parcel::stage::done;
        scheduler_.call_all(p.reading);
        if (!p.sender_holds) offices_.give_back(p);
    }

    /// Called by the sender to give up a message: withdraws it if nobody has taken it.
    void let_go(parcel& p) noexcept {
        p.sender_holds = false;
        if (p.at == parcel::stage::done || p.at == parcel::stage::lost)
            offices_.give_back(p);
        else if (p.at != parcel::stage::taken)
            drop(p);
    }

    bool wait_until_read(parcel& p, deadline until) {
        if (p.at == parcel::stage::done) return true;
        throw_if_ended(p.on);
        if (passed(until)) return poll(), p.at == parcel::stage::done;
        return wait(p.reading, {.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on}, until);
    }

    void settle(parcel& p) noexcept {
        if (p.at != parcel::stage::taken) return;
        wait_record what{.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on, .ends_with_context = false};
        scheduler_.wait(p.reading, what, deadline::never);
    }

    // --- appointments

    void arrive(appointment& due) {
        parcel& p = static_cast<parcel&>(due);
        if (p.at == parcel::stage::held) return deliver_held(at(p.receiver));  // nobody has overtaken it
        scheduler_.record(2U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver));
        if (std::exchange(p.queues, false)) {
            const time_point taken = links_.land(now(), p.receiver, p.tail, p.pieces.size_bytes());
            if (taken > now()) return scheduler_.future().add(p, taken);
        }
        if (p.holds.ns > 0 || !at(p.receiver).held.empty()) return hold_or_overtake(p);
        deliver(p);
    }

  protected:
    // --- the way of a message through the network

    /// Loses a message; its sender is not told.
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
        p.holds = flight.held;
        p.queues = links_.queues_at(p.receiver);
        const time_point arrives = p.queues ? flight.head : flight.tail;
        scheduler_.future().add(p, arrives);
        if (flight.twice) repeat(p, arrives);
    }

    /// Sends a copy of a message, which a fault duplicates.
    void repeat(const parcel& p, time_point arrives) {
        parcel& copy = offices_.accept(p.source, p.receiver, p.on);
        for (const byte_view piece : p.pieces) copy.owned.insert(copy.owned.end(), piece.begin(), piece.end());
        copy.pieces = byte_view(copy.owned);
        copy.handed_over = true;
        copy.sender_holds = false;
        copy.tail = p.tail;
        copy.queues = p.queues;
        at(p.receiver).handed_over += copy.owned.size();
        at(p.receiver).mail.push_back(copy);
        scheduler_.future().add(copy, arrives);
    }

    /// Holds a message back until one of another sender has overtaken it; later messages of its sender stay behind it.
    /// All messages that are held at a receiver are of one sender.
    void hold_or_overtake(parcel& p) {
        rank_state& receiver = at(p.receiver);
        const parcel* const first = receiver.held.first();
        if (first != nullptr && first->source != p.source) {
            deliver(p);
            return deliver_held(receiver);
        }
        if (first != nullptr) p.holds = first->holds;
        p.at = parcel::stage::held;
        receiver.held.push_back(p);
        scheduler_.future().add(p, now() + p.holds);
    }
    void deliver_held(rank_state& receiver) {
        while (parcel* const p = receiver.held.first()) {
            receiver.held.remove(*p);
            p->at = parcel::stage::on_the_way;
            if (p->pending()) scheduler_.future().remove(*p);
            scheduler_.record(5U, static_cast<unsigned>(p->source), static_cast<unsigned>(p->receiver));
            deliver(*p);
        }
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

    /// Removes a message from wherever it is: on its way, held or in the mailbox.
    void remove(parcel& p) noexcept {
        if (p.pending()) scheduler_.future().remove(p);
        if (p.at == parcel::stage::arrived) offices_.remove(p);
        if (p.at == parcel::stage::held) at(p.receiver).held.remove(p);
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

    link_table links_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;

  private:
    post_office offices_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
