#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of a pair averaging.
struct pair_kind {
    static constexpr message_kind pushed{"pair averaging", 1};    ///< to the rank itself: there are gradients
    static constexpr message_kind leaves{"pair averaging", 2};    ///< to itself: see `departure`
    static constexpr message_kind ask{"pair averaging", 3};       ///< whether the receiver is free for an exchange
    static constexpr message_kind free{"pair averaging", 4};      ///< the sender waits for the receiver's model
    static constexpr message_kind busy{"pair averaging", 5};      ///< ask somebody else
    static constexpr message_kind request{"pair averaging", 6};   ///< with the sender's model
    static constexpr message_kind answer{"pair averaging", 7};    ///< with the model from before it has averaged
    static constexpr message_kind finished{"pair averaging", 8};  ///< the sender asks no more, by its `departure`
    static constexpr message_kind heard{"pair averaging", 9};     ///< of `finished`, with the sender's own `departure`
    static constexpr message_kind lost{"pair averaging", 10};     ///< the sender has waited for the receiver in vain
    static constexpr message_kind gone{"pair averaging", 11};     ///< the sender answers no more

    /// How a rank leaves a run.
    enum departure : unsigned char { stays, retires, ends, is_destroyed };

    /// What a transport tells of a rank.
    static constexpr message_kind of(peer_change change) {
        if (change == peer_change::ended) return gone;
        return change == peer_change::silent ? lost : message_kind{};
    }
    static constexpr bool is_own(message_kind kind) { return kind.number <= leaves.number; }
    static constexpr bool has_model(message_kind kind) { return kind == request || kind == answer; }
};

}}}  // namespace rill::RILL_ABI::detail
