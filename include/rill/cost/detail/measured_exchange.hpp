#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/measure_costs.hpp>
#include <rill/cost/measured_link.hpp>
#include <rill/cost/predict.hpp>
#include <rill/cost/prediction.hpp>
#include <rill/cost/stream_messages.hpp>
#include <rill/stream/wire.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost::detail {

/// A network in which every link is the measured one. Models `NetworkModel`.
struct measured_network {
    network_link each{};
    network_card card{};
    double shared = 0;

    /// Cards limit only what is clearly less than the sum of links.
    static measured_network of(const measured_costs& costs) {
        const measured_link& found = costs.link;
        const auto bandwidth = static_cast<double>(found.link.bandwidth), links = bandwidth * (costs.ranks - 1);
        const auto limit = [&](std::uint64_t measured) {
            return links == 0 || static_cast<double>(measured) < 0.95 * links ? measured : 0;
        };
        measured_network made{.each = found.link, .card = {limit(found.one_to_all), limit(found.all_to_one)}};
        if (found.both_ways != 0)
            made.shared = std::clamp(bandwidth / static_cast<double>(found.both_ways) - 1, 0.0, 1.0);
        return made;
    }

    network_link link_of(rank_t, rank_t) const { return each; }
    network_card card_of(rank_t) const { return card; }
    double share_of_line() const { return shared; }
};

/// What an entry of a message costs: its bytes, and nanoseconds of computing.
struct entry_costs {
    double bytes = 1;
    double fold = 0;
    bool folds_own = false;  ///< whether the entries of the rank's own operand cost as much in a fold
    double encode = 0;
    double decode = 0;
    double copy = 0;    ///< of a receiver in the copy phase
    double result = 0;  ///< of each rank at the end, for every entry of the sum
};

/// The messages of a model, of which long ones take a round trip more, as so many bytes more. Counts the computing of
/// each rank. Models `FollowingMessageModel`.
template <MessageModel Messages>
class computed_messages {
  public:
    computed_messages(Messages& messages, const measured_costs& costs, const entry_costs& each)
        : messages_(messages), each_(each), announced_from_(costs.link.round_trip_from) {
        const network_link& link = costs.link.link;
        const double bytes = 2 * link.latency.seconds() * static_cast<double>(link.bandwidth);
        announcement_ = static_cast<std::uint64_t>(std::llround(bytes));
    }

    void begin(int ranks, int parts) {
        computing_.assign(static_cast<std::size_t>(ranks), 0);
        owners_.assign(static_cast<std::size_t>(ranks), false);
        parts_ = parts;
        messages_.begin(ranks, parts);
    }
    std::uint64_t bytes(rank_t sender, part_range parts, action kind) {
        const std::uint64_t own = messages_.bytes(sender, parts, kind);
        return announced_from_ != 0 && own >= announced_from_ ? own + announcement_ : own;
    }
    void receive(rank_t rank, std::span<const transfer> from, action kind) {
        senders_ = std::max(senders_, static_cast<int>(from.size()));
        for (const transfer& each : from) {
            const double entries = payload(each.peer, each.parts, kind) / each_.bytes;
            at(rank) += entries * (each_.decode + (kind == action::copy ? each_.copy : each_.fold));
            // A finished part is coded once; others forward it as it is.
            if (kind != action::copy || (!has_copied_ && !owners_[static_cast<std::size_t>(each.peer)]))
                at(each.peer) += entries * each_.encode;
            if (kind == action::copy) owners_[static_cast<std::size_t>(each.peer)] = is_copying_ = true;
        }
        if (kind != action::copy && each_.folds_own)
            for (std::size_t i = 0; i < from.size(); ++i)  // once for all operands of the same parts
                if (i == 0 || !(from[i].parts == from[i - 1].parts))
                    at(rank) += payload(rank, from[i].parts, kind) / each_.bytes * each_.fold;
        if constexpr (FollowingMessageModel<Messages>) messages_.receive(rank, from, kind);
    }
    void end_round() {
        has_copied_ = is_copying_;
        if constexpr (FollowingMessageModel<Messages>) messages_.end_round();
    }

    /// The most ranks that send to one in a round.
    int senders() const { return senders_; }
    /// Of the rank that computes longest, up to its result.
    duration computing() {
        const double most = *std::max_element(computing_.begin(), computing_.end());
        return duration(std::llround(most + payload(0, {0, parts_}, action::copy) / each_.bytes * each_.result));
    }

  private:
    double payload(rank_t sender, part_range parts, action kind) {
        return static_cast<double>(messages_.bytes(sender, parts, kind) - wire::header_bytes);
    }
    double& at(rank_t rank) { return computing_[static_cast<std::size_t>(rank)]; }

    Messages& messages_;
    entry_costs each_;
    std::uint64_t announced_from_;
    std::uint64_t announcement_ = 0;
    std::vector<double> computing_;
    std::vector<bool> owners_;  ///< who has sent a finished part
    int parts_ = 1;
    int senders_ = 0;
    bool is_copying_ = false, has_copied_ = false;
};

/// What sums over a topology were measured to take, and what small ones take by the measured link.
struct sum_times {
    struct form {
        duration small{};      ///< 0: not measured
        double more = 0;       ///< nanoseconds of an entry more; 0: not measured
        duration predicted{};  ///< of the small sum
    };
    form dense{}, streams{};
    duration empty{};  ///< of messages without content

    /// `i`: of `measured_topologies`.
    template <Topology Shape>
    static sum_times over(const Shape& shape, std::size_t i, const measured_costs& costs) {
        const auto small = [](double ns) { return duration(std::llround(ns)); };
        const auto predicted = [&](auto messages) {
            return predict_all_reduce(shape, costs.ranks, messages, measured_network::of(costs)).elapsed;
        };
        const sum_costs& sums = costs.sums;
        const small_sum few{costs.ranks, sums.few};
        return {.dense = {small(sums.small_dense[i]), sums.dense[i],
                          predicted(dense_messages<float>(static_cast<std::size_t>(sums.few)))},
                .streams = {small(sums.small_streams[i]), sums.streams[i],
                            predicted(stream_messages(few.dimension(), few, few.codings()))},
                .empty = predicted(dense_messages<float>(0))};
    }
};

/// Predicts `of.topology`'s `all_reduce`, and writes what it takes into `of`. Where a small sum was measured, only what
/// this one takes more is predicted, by an entry more where that was measured too.
template <class Candidate, MessageModel Messages>
void predict_measured(Candidate& of, const measured_costs& costs, entry_costs each, Messages messages,
                      const sum_times& times) {
    const sum_times::form& measured = of.compress ? times.streams : times.dense;
    if (measured.more > 0)
        each = {.bytes = each.bytes, .encode = each.encode, .decode = each.decode, .result = measured.more};
    computed_messages<Messages> computed(messages, costs, each);
    const prediction found = predict_all_reduce(of.topology, costs.ranks, computed, measured_network::of(costs));
    of.rounds = found.rounds;
    of.senders = computed.senders();
    of.computing = computed.computing();
    if (measured.small > duration{}) {
        of.least = of.network = measured.small;
        if (measured.more > 0) return;
        // In each round the line is idle for a time. What it then lets pass at once makes up for that.
        const duration more = std::max(found.elapsed - measured.predicted, duration{}),
                       idle = std::max(measured.small - (measured.predicted - times.empty), duration{}),
                       at_once = transfer_time(costs.link.at_once, costs.link.link.bandwidth) * found.rounds;
        of.network = measured.small + more - std::min({more, idle, at_once});
    } else {
        of.least = costs.link.link.latency * found.rounds;
        of.network = found.elapsed;
    }
}

}}}  // namespace rill::RILL_ABI::cost::detail
