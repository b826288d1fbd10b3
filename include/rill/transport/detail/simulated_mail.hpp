#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/lookout.hpp>
#include <rill/transport/detail/simulated_links.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_rank_state.hpp>
#include <rill/transport/detail/simulated_rooms.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/detail/simulated_who_waits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The messages between ranks.
class mail : public rooms {
  public:
    mail(int ranks, const network& chosen) : rooms(ranks, chosen), links_(ranks, chosen) {}

    // --- the sender's side and the receiver's

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        parcel& p = offices_.accept(source, at(source).lives, receiver, on);
        p.pieces = pieces;
        p.handed_over = false;
        p.sender_holds = true;
        send(p);
        return p;
    }

    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
        if (!reserve_room(receiver, on, bytes.size(), until)) return false;
        parcel& p = offices_.accept(source, at(source).lives, receiver, on);
        p.owned = std::move(bytes);
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
        const rank_t reader = p.receiver;
        throw_if_silent(p.source, {&reader, 1}, p.on);
        if (passed(until)) return poll(), p.at == parcel::stage::done;
        wait_record what{.kind = waits_for::reading, .peers = {&reader, 1}, .on = p.on};
        const rank_t self = p.source;
        const wake outcome = scheduler_.wait(p.reading, what, until);
        if (concluded(outcome, what)) return true;
        if (outcome == wake::ended) throw_if_silent(self, what.peers, what.on);
        return false;
    }

    void settle(parcel& p) noexcept {
        if (p.at != parcel::stage::taken) return;
        wait_record what{.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on, .ends_with_context = false};
        scheduler_.wait(p.reading, what, deadline::never);
    }

    /// A number of a rank's life, as `self` knows it.
    std::uint64_t incarnation(rank_t self, rank_t peer) {
        const auto& known = at(self).known;
        return incarnation_of(peer, known.empty() ? at(peer).lives : known[static_cast<std::size_t>(peer)].life);
    }

    void fence(rank_t self, rank_t peer, std::uint64_t incarnation) {
        int life = 1;
        while (life <= at(peer).lives && incarnation_of(peer, life) != incarnation) ++life;
        if (life > at(peer).lives || is_fenced(self, peer, life)) return;
        at(self).fenced.emplace_back(peer, life);
        at(self).mail.for_each([&](parcel& p) {
            if (p.source == peer && p.life == life) drop(p);
        });
        if (at(self).known.empty()) return;
        known_peer& last = at(self).known[static_cast<std::size_t>(peer)];
        if (last.life == life && !last.has_ended) tell_end(self, peer, last);
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
        if (at(p.receiver).calls.is_closed(p.on.context) || is_fenced(p.receiver, p.source, p.life))
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
        parcel& copy = offices_.accept(p.source, p.life, p.receiver, p.on);
        for (const byte_view piece : p.pieces) copy.owned.append(piece.begin(), piece.end());
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
        if (!at(p.receiver).known.empty() && p.source != p.receiver) learn_life(p.receiver, p.source, p.life, false);
        pass_on(p);
    }
    void pass_on(parcel& p) {
        for (strand* s = at(p.receiver).receiving.first(); s != nullptr; s = wait_list::after(*s)) {
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
        throw_if_in_vain(self, peers, on);
        if (passed(until)) return poll(), nullptr;
        wait_record what{.kind = waits_for::message, .peers = peers, .on = on};
        const wake outcome = scheduler_.wait(at(self).receiving, what, until);
        if (concluded(outcome, what)) return what.delivered;
        if (outcome == wake::ended) throw_if_in_vain(self, peers, on);
        return nullptr;
    }

    // --- what a rank that monitors is told of others

    /// Tells all that has become of a peer up to a life, or up to its end.
    void learn_life(rank_t self, rank_t peer, int life, bool has_ended) {
        if (at(self).known.empty() || is_fenced(self, peer, life)) return;
        known_peer& last = at(self).known[static_cast<std::size_t>(peer)];
        if (last.life < life) {
            if (last.life > 0 && !last.has_ended) tell_end(self, peer, last);
            last = {.life = life};
            for (const channel on : at(self).monitored) tell_change(self, peer, on, peer_change::arrived, life);
        }
        if (last.life != life || last.has_ended) return;
        if (last.is_silent) tell_silence(self, peer, false);
        if (has_ended) tell_end(self, peer, last);
    }

    /// A rank that monitors has heard nothing of a peer for long, or hears of it again.
    void tell_silence(rank_t self, rank_t peer, bool is_silent) {
        known_peer& last = at(self).known[static_cast<std::size_t>(peer)];
        last.is_silent = is_silent;
        for (const channel on : at(self).monitored)
            tell_change(self, peer, on, is_silent ? peer_change::silent : peer_change::recovered, last.life);
        if (!is_silent) return;
        end_receives_in_vain(self);
        for (strand& each : scheduler_.strands()) {
            const wait_record* const what = each.rank == self ? each.waiting : nullptr;
            if (what != nullptr && what->kind == waits_for::reading && what->ends_with_context &&
                waits_for_silent(self, what->peers, what->on))
                scheduler_.call(each, wake::ended);
        }
    }

    void tell_end(rank_t self, rank_t peer, known_peer& last) {
        last.has_ended = true;
        if (!is_fenced(self, peer, last.life))
            for (const channel on : at(self).monitored) tell_change(self, peer, on, peer_change::ended, last.life);
        end_receives_in_vain(self);
    }
    void end_receives_in_vain(rank_t self) {
        at(self).receiving.for_each([&](strand& s) {
            if (waits_in_vain(self, s.waiting->peers, s.waiting->on)) scheduler_.call(s, wake::ended);
        });
    }

    void tell_change(rank_t self, rank_t peer, channel on, peer_change change, int life) {
        parcel& p = offices_.accept(peer, life, self, on);
        p.owned = to_message({.kind = change, .incarnation = incarnation_of(peer, life)});
        p.pieces = byte_view(p.owned);
        p.handed_over = p.sender_holds = false;
        at(self).mail.push_back(p);
        pass_on(p);
    }

    static std::uint64_t incarnation_of(rank_t rank, int life) {
        return life == 0 ? 0 : mix64(static_cast<unsigned>(rank), static_cast<unsigned>(life)) | 1U;
    }

    bool is_fenced(rank_t self, rank_t peer, int life) {
        const auto& fenced = at(self).fenced;
        return !fenced.empty() && std::find(fenced.begin(), fenced.end(), std::pair(peer, life)) != fenced.end();
    }

    bool is_under_way(rank_t source, int life, rank_t receiver) {
        for (const parcel* p = at(receiver).mail.first(); p != nullptr; p = at(receiver).mail.after(*p))
            if (p->source == source && p->life == life && p->at != parcel::stage::arrived) return true;
        return false;
    }

    bool is_open(rank_t self, std::uint64_t context) {
        const auto& monitored = at(self).monitored;
        return std::any_of(monitored.begin(), monitored.end(), [=](channel each) { return each.context == context; });
    }
    /// Whether a rank that monitors waits for peers that have all ended, or are silent, on another channel of a context
    /// that it monitors; or in any other context for peers that have all thrown.
    bool waits_in_vain(rank_t self, std::span<const rank_t> peers, channel on) {
        const rank_state& own = at(self);
        if (own.known.empty() || peers.empty()) return false;
        if (std::find(own.monitored.begin(), own.monitored.end(), on) != own.monitored.end()) return false;
        const bool open = is_open(self, on.context);
        return std::all_of(peers.begin(), peers.end(), [&](rank_t peer) {
            const known_peer& last = own.known[static_cast<std::size_t>(peer)];
            return open ? last.has_ended || last.is_silent : last.has_ended && at(peer).failure;
        });
    }
    /// The same where one of these peers may be heard again.
    bool waits_for_silent(rank_t self, std::span<const rank_t> peers, channel on) {
        return waits_in_vain(self, peers, on) && std::any_of(peers.begin(), peers.end(), [&](rank_t peer) {
                   return !at(self).known[static_cast<std::size_t>(peer)].has_ended;
               });
    }

    void throw_if_silent(rank_t self, std::span<const rank_t> peers, channel on) {
        if (waits_for_silent(self, peers, on)) throw_error(rill::detail::notice_of_silence(self, peers, on));
    }
    void throw_if_in_vain(rank_t self, std::span<const rank_t> peers, channel on) {
        if (!waits_in_vain(self, peers, on)) return;
        throw_if_silent(self, peers, on);
        if (!is_open(self, on.context)) {
            abort_notice notice = *at(peers[0]).failure;
            notice.context = on.context;
            throw_error(notice);
        }
        throw peer_failure({.context = on.context,
                            .culprit = peers[0],
                            .reason = "rank " + std::to_string(self) + " waits for a message from " +
                                      ranks_text(peers) + channel_text(on) + ", which will not come: they have ended"});
    }

    link_table links_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;

  private:
    post_office offices_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
