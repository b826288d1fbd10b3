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

/// A network as links and cards. `simulated::network` models it. `share_of_line()`, which may be left out: for which
/// part of a message's time the way back of its link is in use too, 1 on half-duplex lines.
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

/// Predicts the time and traffic of the schedules `schedule_of(0) … schedule_of(ranks - 1)` on a network, without
/// running them. All rounds of all ranks are computed by the arithmetic of the simulated network.
///
/// `network`: links and cards, e.g. a `simulated::network` (whose jitter and faults are ignored), or any `LinkModel`.
/// `messages`: `dense_messages`, `stream_messages`, or any `MessageModel`. `starts`: when each rank enters; without it,
/// all enter at 0. Computing takes no time.
///
/// For lone messages on equal links, the elapsed time of a simulated run is met to the nanosecond. If cards queue,
/// lines are half-duplex or ranks enter late, a run can differ: the prediction ignores that a receiver which has not
/// read yet holds up its sender, that a message of a later round overtakes another one at a card, and that messages of
/// different rounds meet on a half-duplex line.
///
/// Cost: O(messages) time. Memory: O(ranks) in addition to that of `messages`, and O(messages of a round) if a card
/// limits receiving.
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

/// Predicts the `all_reduce` of a topology; see `predict`.
template <Topology Shape, class Messages, class Network>
prediction predict_all_reduce(const Shape& shape, int ranks, Messages&& messages, const Network& network,
                              std::span<const duration> starts = {}) {
    return predict(
        ranks, [&](rank_t rank) { return shape.all_reduce(ranks, rank); }, messages, network, starts);
}

}}}  // namespace rill::RILL_ABI::cost
