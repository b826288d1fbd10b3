#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/detail/evaluation.hpp>
#include <rill/cost/prediction.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// Links and cards: `simulated::network` is one.
template <class N>
concept NetworkModel = requires(const N& network, rank_t rank) {
    { network.link_of(rank, rank) } -> std::convertible_to<network_link>;
    { network.card_of(rank) } -> std::convertible_to<network_card>;
};

namespace detail {
template <LinkModel Links>
struct links_without_cards {
    const Links& links;

    network_link link_of(rank_t source, rank_t receiver) const { return links(source, receiver); }
    network_card card_of(rank_t) const { return {}; }
};
}  // namespace detail

/// What the schedules `schedule_of(0) … schedule_of(ranks - 1)` take on a network, with messages of `messages`: all
/// rounds of all ranks, by the simulated network's own arithmetic, without running anything.
///
/// `network`: links, and cards on both sides, as of a `simulated::network`, of which nothing else is looked at (no
/// jitter, no faults); or any `LinkModel`. `messages`: `dense_messages`, `stream_messages`, or any `MessageModel`.
/// Computing takes no time. `starts`: when each rank enters, without it all at 0. The elapsed time of a run with lone
/// messages on equal links is met to the nanosecond; where cards queue, or ranks enter late, a rank is not held up
/// here by a receiver that has not read yet, nor overtaken at a card by a message of a later round.
///
/// Time O(messages), memory O(ranks) in addition to that of `messages`, and O(messages of a round) where receiving is
/// limited.
template <class ScheduleOf, class Messages, class Network>
    requires(NetworkModel<Network> || LinkModel<Network>) && MessageModel<std::remove_reference_t<Messages>>
prediction predict(int ranks, const ScheduleOf& schedule_of, Messages&& messages, const Network& network,
                   std::span<const duration> starts = {}) {
    using plan = std::remove_cvref_t<decltype(schedule_of(rank_t{0}))>;
    static_assert(Schedule<plan>, "rill::cost::predict: `schedule_of(rank)` does not return a Schedule");
    RILL_EXPECTS(ranks >= 1, "cost::predict: needs at least one rank");
    RILL_EXPECTS(starts.empty() || starts.size() == static_cast<std::size_t>(ranks),
                 "cost::predict: one start for each rank, or none");
    if constexpr (NetworkModel<Network>)
        return detail::evaluation<plan, std::remove_reference_t<Messages>, Network>(ranks, schedule_of, messages,
                                                                                    network, starts)
            .run();
    else
        return predict(ranks, schedule_of, messages, detail::links_without_cards<Network>{network}, starts);
}

/// Predicts a topology's `all_reduce`.
template <Topology Shape, class Messages, class Network>
prediction predict_all_reduce(const Shape& shape, int ranks, Messages&& messages, const Network& network,
                              std::span<const duration> starts = {}) {
    return predict(
        ranks, [&](rank_t rank) { return shape.all_reduce(ranks, rank); }, messages, network, starts);
}

}}}  // namespace rill::RILL_ABI::cost
