#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/fault_judge.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_report.hpp>
#include <rill/transport/detail/simulated_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The ranks' cards and the directed links in use; computes when messages arrive.
class link_table {
  public:
    link_table(int ranks, const network& chosen) : network_(chosen), faults_(chosen.faults, ranks) {
        if (!network_.cards) return;
        for (rank_t rank = 0; rank < ranks; ++rank) cards_.push_back({.limits = network_.card_of(rank)});
    }

    const rill::detail::fault_judge& faults() const { return faults_; }

    /// When the first and the last byte of a message reach its receiver.
    struct flight {
        time_point head{}, tail{};
        bool lost = false;
        bool twice = false;
        duration held{};  ///< how long at most it waits to be overtaken
    };

    /// Computes the flight of a message that is posted now, and occupies its link and its sender's card.
    flight depart(time_point now, rank_t source, rank_t receiver, std::size_t bytes) {
        // NOLINTNEXTLINE(readability-suspicious-call-argument): the way back
        const time_point back_free_at = network_.half_duplex ? link_between(receiver, source).free_at : time_point{};
        used_link& way = link_between(source, receiver);
        const auto fate = faults_.concerns_messages()
                              ? faults_.of_message(source, receiver, way.messages + 1, now - time_point{})
                              : rill::detail::fault_judge::verdict{};
        const duration on_link = transfer_time(bytes, way.properties.bandwidth);
        time_point start = std::max({now, way.free_at, back_free_at});
        duration length = on_link;
        if (!cards_.empty()) {
            card& sends = cards_[static_cast<std::size_t>(source)];
            start = std::max(start, sends.can_send_at);
            const duration on_card = transfer_time(bytes, sends.limits.send);
            if (sends.limits.send != 0) sends.can_send_at = start + on_card;
            length = std::max(length, on_card);
        }
        way.free_at = start + on_link;
        const time_point head =
            start + way.properties.latency + network_.extra(source, receiver, way.messages) + fate.late;
        ++way.messages;
        way.bytes += bytes;
        if (fate.lost) return ++way.lost, flight{.lost = true};
        way.duplicated += fate.twice ? 1U : 0U;
        way.held += fate.held.ns > 0 ? 1U : 0U;
        way.last_head = std::max(way.last_head, head);
        way.last_tail = std::max(way.last_tail, head + length);
        return {.head = way.last_head, .tail = way.last_tail, .twice = fate.twice, .held = fate.held};
    }

    /// When a control message that is sent now arrives; nothing if it is lost. It occupies neither link nor card.
    std::optional<time_point> depart_letter(time_point now, rank_t source, rank_t receiver) {
        used_link& way = link_between(source, receiver);
        const std::uint64_t letter = ++way.letters;
        const auto fate = faults_.concerns_messages()
                              ? faults_.of_letter(source, receiver, way.messages + 1, now - time_point{}, letter)
                              : rill::detail::fault_judge::verdict{};
        if (fate.lost) return ++way.control_lost, std::nullopt;
        return now + way.properties.latency + network_.extra(source, receiver, ~letter) + fate.late;
    }

    duration latency(rank_t source, rank_t receiver) { return link_between(source, receiver).properties.latency; }

    /// Whether messages queue at the receiver's card because its speed is limited.
    bool queues_at(rank_t receiver) const {
        return !cards_.empty() && cards_[static_cast<std::size_t>(receiver)].limits.receive != 0;
    }

    /// When the receiver's card has received a message whose first byte arrives now; occupies the card until then.
    time_point land(time_point now, rank_t receiver, time_point tail, std::size_t bytes) {
        card& takes = cards_[static_cast<std::size_t>(receiver)];
        const time_point start = std::max(now, takes.can_receive_at);
        return takes.can_receive_at = std::max(tail, start + transfer_time(bytes, takes.limits.receive));
    }

    void lose(rank_t source, rank_t receiver) { ++link_between(source, receiver).lost; }

    std::vector<link_report> report() const {
        std::vector<link_report> all;
        links_.for_each([&](const ends& key, const used_link& way) {
            if (way.messages == 0 && way.control_lost == 0) return;
            all.push_back({key.source, key.receiver, way.messages, way.bytes, way.lost, way.duplicated, way.held,
                           way.control_lost});
        });
        std::sort(all.begin(), all.end(), [](const link_report& a, const link_report& b) {
            return a.source != b.source ? a.source < b.source : a.receiver < b.receiver;
        });
        return all;
    }

  private:
    struct ends {
        rank_t source = no_rank;
        rank_t receiver = no_rank;

        std::size_t hash() const { return mix64(static_cast<unsigned>(source), static_cast<unsigned>(receiver)); }
        friend bool operator==(const ends&, const ends&) = default;
    };
    struct used_link {
        network_link properties{};
        time_point free_at{};
        time_point last_head{};
        time_point last_tail{};
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::uint64_t lost = 0;
        std::uint64_t duplicated = 0;
        std::uint64_t control_lost = 0;
        std::uint64_t held = 0;
        std::uint64_t letters = 0;
    };
    struct card {
        network_card limits{};
        time_point can_send_at{};
        time_point can_receive_at{};
    };

    used_link& link_between(rank_t source, rank_t receiver) {
        const ends key{source, receiver};
        if (used_link* const known = links_.find(key)) return *known;
        used_link& made = links_[key];
        made.properties = network_.link_of(source, receiver);
        return made;
    }

    network network_;
    rill::detail::fault_judge faults_;
    table<ends, used_link> links_;
    std::vector<card> cards_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
