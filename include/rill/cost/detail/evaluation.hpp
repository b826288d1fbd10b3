#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/prediction.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost::detail {

/// Computes the rounds of all ranks, one round after the other. A rank ends a round when it has received all messages
/// of the round. As in the simulated network, a message departs when its sender has begun the round and both link and
/// card are free.
template <Schedule Plan, class Messages, class Network>
class evaluation {
  public:
    template <class ScheduleOf>
    evaluation(int ranks, const ScheduleOf& schedule_of, Messages& messages, const Network& network,
               std::span<const duration> starts)
        : messages_(messages), network_(network) {
        const auto count = static_cast<std::size_t>(ranks);
        plans_.reserve(count);
        for (rank_t rank = 0; rank < ranks; ++rank) plans_.push_back(schedule_of(rank));
        ranks_.resize(count);
        used_in_turn_.resize(count);
        for (std::size_t r = 0; r < count; ++r) {
            if (!starts.empty()) ranks_[r].now = ranks_[r].next = time_point{} + starts[r];
            ranks_[r].card = network_.card_of(static_cast<rank_t>(r));
            receiving_is_limited_ = receiving_is_limited_ || ranks_[r].card.receive != 0;
        }
        traffic_.resize(count);
        first_start_ = std::min_element(ranks_.begin(), ranks_.end(), [](const state& a, const state& b) {
                           return a.now < b.now;
                       })->now;
        messages_.begin(ranks, plans_.front().parts());
    }

    prediction run() {
        const int rounds = plans_.front().rounds();
        for (int round = 0; round < rounds; ++round) evaluate(round);
        prediction result{.rounds = rounds, .ranks = std::move(traffic_)};
        for (const state& each : ranks_) {
            result.ends.push_back(each.now - time_point{});
            result.elapsed = std::max(result.elapsed, each.now - first_start_);
        }
        return result;
    }

  private:
    struct busy_link {
        rank_t peer = no_rank;
        time_point free_at{};
    };
    struct state {
        network_card card{};
        time_point now{};   ///< when the rank began the round
        time_point next{};  ///< when it begins the next round
        time_point can_send_at{};
        time_point can_send_next{};  ///< `can_send_at` after the round
        time_point can_receive_at{};
        time_point links_free_at{};     ///< when the last link used in this round is free
        std::vector<busy_link> busy{};  ///< links busy since earlier rounds
    };
    /// A message on its way. `head` and `tail`: when its first and last byte reach the receiver.
    struct flight {
        rank_t receiver = no_rank;
        time_point head{}, tail{}, link_free_at{};
        std::uint64_t bytes = 0;
    };
    /// When the link from the rank being computed to a peer is free. Valid if `turn` is the current turn.
    struct use {
        std::uint64_t turn = 0;
        time_point free_at{};
    };

    state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    const Plan& plan(rank_t rank) const { return plans_[static_cast<std::size_t>(rank)]; }
    rank_t size() const { return static_cast<rank_t>(plans_.size()); }

    void evaluate(int round) {
        inbound_.clear();
        for (rank_t rank = 0; rank < size(); ++rank) {
            at(rank).links_free_at = {};
            at(rank).can_send_next = for_each_flight(rank, round, [&](const flight& f) { take_off(rank, f); });
        }
        if (receiving_is_limited_) land_all();
        for (rank_t rank = 0; rank < size(); ++rank) remember_busy_links(rank, round);
        if constexpr (FollowingMessageModel<Messages>) follow(round);
        for (state& each : ranks_) {
            each.now = each.next;
            each.can_send_at = each.can_send_next;
        }
    }

    /// Calls `visit(flight)` for each message that a rank sends in a round, from its state before the round. Returns
    /// when its card can send the next message.
    template <class Visit>
    time_point for_each_flight(rank_t rank, int round, Visit&& visit) {
        const Plan& mine = plan(rank);
        const state& self = at(rank);
        const int sends = mine.sends(round);
        time_point can_send_at = self.can_send_at;
        ++turn_;
        for (const busy_link& each : self.busy) used(each.peer) = {turn_, each.free_at};
        for (int i = 0; i < sends; ++i) {
            const transfer to = mine.send(round, i);
            const std::uint64_t bytes = messages_.bytes(rank, to.parts, mine.kind(round));
            const network_link way = network_.link_of(rank, to.peer);
            time_point start = std::max({self.now, can_send_at, line_free_at(rank, round, to.peer)});
            if (const use& before = used(to.peer); before.turn == turn_) start = std::max(start, before.free_at);
            const duration on_link = transfer_time(bytes, way.bandwidth);
            const duration on_card = transfer_time(bytes, self.card.send);
            if (self.card.send != 0) can_send_at = start + on_card;
            used(to.peer) = {turn_, start + on_link};
            const time_point head = start + way.latency;
            visit(flight{to.peer, head, head + std::max(on_link, on_card), start + on_link, bytes});
        }
        return can_send_at;
    }
    /// When a rank can begin to send to a peer: once it has begun the round and its earlier messages there have left.
    time_point begin_of(rank_t rank, rank_t peer) {
        time_point begin = at(rank).now;
        for (const busy_link& each : at(rank).busy)
            if (each.peer == peer) begin = std::max(begin, each.free_at);
        return begin;
    }
    /// When the line to `peer` is free of what that peer sends back in the same round, if it begins first.
    time_point line_free_at(rank_t rank, int round, rank_t peer) {
        const double share = share_of_line();
        if (share == 0) return {};
        const time_point own = begin_of(rank, peer);
        const time_point other = begin_of(peer, rank);  // NOLINT(readability-suspicious-call-argument): the way back
        if (other > own || (other == own && peer > rank)) return {};
        const Plan& mine = plan(rank);
        int first = 0, last = mine.receives(round);
        while (first < last) {  // they ascend in peers
            const int middle = (first + last) / 2;
            if (mine.receive(round, middle).peer < peer)
                first = middle + 1;
            else
                last = middle;
        }
        if (first == mine.receives(round)) return {};
        const transfer back = mine.receive(round, first);
        if (back.peer != peer) return {};
        const std::uint64_t bytes = messages_.bytes(peer, back.parts, mine.kind(round));
        const duration alone = transfer_time(bytes, network_.link_of(peer, rank).bandwidth);
        return other + duration(std::llround(share * static_cast<double>(alone.ns)));
    }
    /// The part of a message's time for which the way back of its link is in use too: 1 on a half-duplex line.
    double share_of_line() const {
        if constexpr (requires { network_.share_of_line(); })
            return network_.share_of_line();
        else
            return 0;
    }
    use& used(rank_t peer) { return used_in_turn_[static_cast<std::size_t>(peer)]; }

    void take_off(rank_t source, const flight& f) {
        traffic_[static_cast<std::size_t>(source)] += {.messages_sent = 1, .bytes_sent = f.bytes};
        traffic_[static_cast<std::size_t>(f.receiver)] += {.messages_received = 1, .bytes_received = f.bytes};
        at(source).links_free_at = std::max(at(source).links_free_at, f.link_free_at);
        if (at(f.receiver).card.receive != 0)
            inbound_.push_back(f);
        else
            at(f.receiver).next = std::max(at(f.receiver).next, f.tail);
    }

    /// Lets the receivers' cards take one message after the other: first come, first served.
    void land_all() {
        std::stable_sort(inbound_.begin(), inbound_.end(),
                         [](const flight& a, const flight& b) { return a.head < b.head; });
        for (const flight& f : inbound_) {
            state& to = at(f.receiver);
            const time_point start = std::max(f.head, to.can_receive_at);
            to.can_receive_at = std::max(f.tail, start + transfer_time(f.bytes, to.card.receive));
            to.next = std::max(to.next, to.can_receive_at);
        }
    }

    /// Keeps only the links that the rank finds busy in its next round; there seldom are any.
    void remember_busy_links(rank_t rank, int round) {
        state& self = at(rank);
        if (self.busy.empty() && self.links_free_at <= self.next) return;
        still_busy_.clear();
        const auto keep = [&](rank_t peer, time_point free_at) {
            if (free_at > self.next) still_busy_.push_back({peer, free_at});
        };
        for (const busy_link& each : self.busy) keep(each.peer, each.free_at);
        for_each_flight(rank, round, [&](const flight& f) { keep(f.receiver, f.link_free_at); });
        self.busy.swap(still_busy_);
    }

    /// Tells the message model what every rank receives.
    void follow(int round) {
        for (rank_t rank = 0; rank < size(); ++rank) {
            const Plan& mine = plan(rank);
            received_.clear();
            for (int i = 0; i < mine.receives(round); ++i) received_.push_back(mine.receive(round, i));
            if (!received_.empty()) messages_.receive(rank, std::span<const transfer>(received_), mine.kind(round));
        }
        messages_.end_round();
    }

    Messages& messages_;
    const Network& network_;
    std::vector<Plan> plans_;
    std::vector<state> ranks_;
    std::vector<traffic> traffic_;
    time_point first_start_{};
    bool receiving_is_limited_ = false;
    std::uint64_t turn_ = 0;
    std::vector<use> used_in_turn_;
    std::vector<flight> inbound_;
    std::vector<busy_link> still_busy_;
    std::vector<transfer> received_;
};

}}}  // namespace rill::RILL_ABI::cost::detail
