#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of a gossip with a coordinator, rank 0.
struct coordinated_kind {
    // To the coordinator. `join` and `leave` carry how often the worker has joined, the others the worker's round.
    static constexpr message_kind join{"coordinated gossip", 1};    ///< weight: whether it needs a model
    static constexpr message_kind report{"coordinated gossip", 2};  ///< ROUND_END, a `round_report`
    static constexpr message_kind leave{"coordinated gossip", 3};
    static constexpr message_kind heard{"coordinated gossip", 4};  ///< that the run is over

    // From the coordinator, each with an `order`.
    static constexpr message_kind begin{"coordinated gossip", 5};  ///< the next round
    static constexpr message_kind over{"coordinated gossip", 6};   ///< there is no next round
    static constexpr message_kind out{"coordinated gossip", 7};    ///< the others go on without this worker

    // Between workers, with their round.
    static constexpr message_kind values{"coordinated gossip", 8};
    static constexpr message_kind decline{"coordinated gossip", 9};  ///< instead of values
    static constexpr message_kind model{"coordinated gossip", 10};   ///< all of it, for who joins

    /// Never sent: what a transport tells of a rank.
    static constexpr message_kind ended{"coordinated gossip", 11};
    static constexpr message_kind arrived{"coordinated gossip", 12};
    static constexpr message_kind of(peer_change change) {
        if (change == peer_change::ended) return ended;
        return change == peer_change::arrived ? arrived : message_kind{};
    }

    static constexpr bool is_to_coordinator(message_kind kind) {
        return kind.protocol == join.protocol && kind.number <= heard.number;
    }
    static constexpr bool is_from_coordinator(message_kind kind) {
        return kind.protocol == join.protocol && begin.number <= kind.number && kind.number <= out.number;
    }
    static constexpr bool is_between_workers(message_kind kind) {
        return kind.protocol == join.protocol && values.number <= kind.number && kind.number <= model.number;
    }
};

/// What the coordinator tells one worker at the beginning of a round. It fits into a header.
struct round_order {
    std::uint64_t round = 0;
    std::uint32_t seed = 0;   ///< of the mask
    rank_t peer = no_rank;    ///< with whom to exchange
    rank_t other = no_rank;   ///< the newcomer that gets its model; for a newcomer, whose model it gets
    bool commits = false;     ///< the exchange of the round before
    std::uint32_t joins = 0;  ///< how often the worker has joined, as the coordinator knows

    void write_to(wire::header& head) const {
        head.call = seed;
        head.age = static_cast<std::uint32_t>(peer + 1);
        head.contributors = static_cast<std::uint32_t>(other + 1);
        head.weight = static_cast<double>(2 * std::uint64_t{joins} + (commits ? 1 : 0));
    }
    static round_order of(const wire::header& head) {
        const auto weight = static_cast<std::uint64_t>(head.weight);
        return {.round = head.number,
                .seed = head.call,
                .peer = static_cast<rank_t>(head.age) - 1,
                .other = static_cast<rank_t>(head.contributors) - 1,
                .commits = weight % 2 == 1,
                .joins = static_cast<std::uint32_t>(weight / 2)};
    }
    friend bool operator==(const round_order&, const round_order&) = default;
};

/// What a worker tells the coordinator at the end of a round. It fits into a header.
struct round_report {
    bool has_values = false;  ///< of its peer
    duration waited{};        ///< for them, from when it has sent its own; 0: nobody knows, or it did not wait
    std::uint64_t bytes = 0;  ///< of the message that it has sent its peer

    void write_to(wire::header& head) const {
        const auto ns = static_cast<std::uint64_t>(waited.ns);
        head.call = static_cast<std::uint32_t>(ns);
        head.age = static_cast<std::uint32_t>(ns >> 32U);
        head.weight = static_cast<double>(2 * bytes + (has_values ? 1 : 0));
    }
    static round_report of(const wire::header& head) {
        const auto weight = static_cast<std::uint64_t>(head.weight);
        return {.has_values = weight % 2 == 1,
                .waited = duration(static_cast<std::int64_t>(head.call | std::uint64_t{head.age} << 32U)),
                .bytes = weight / 2};
    }
    friend bool operator==(const round_report&, const round_report&) = default;
};

}}}  // namespace rill::RILL_ABI::detail
