#pragma once

#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of a pair averaging.
struct pair_kind {
    static constexpr message_kind pushed{"pair averaging", 1};  ///< to the rank itself: there are gradients
    static constexpr message_kind leaves{"pair averaging",
                                         2};  ///< to itself: 0 retires, 1 ends the run, 2 is destroyed
    static constexpr message_kind request{"pair averaging", 3};  ///< with the sender's model and its exchange's number
    static constexpr message_kind answer{"pair averaging", 4};   ///< with the model from before it has averaged
    static constexpr message_kind busy{"pair averaging", 5};     ///< ask somebody else
    static constexpr message_kind left{"pair averaging", 6};     ///< to the root: 0 has retired, 1 wants the run to end
    static constexpr message_kind finish{"pair averaging", 7};   ///< begin no more exchanges
    static constexpr message_kind finished{"pair averaging", 8};  ///< to the root: none is under way
    static constexpr message_kind over{"pair averaging", 9};      ///< nobody asks any more
    static constexpr message_kind gone{"pair averaging", 10};     ///< the sender answers no more

    static constexpr message_kind heard{"pair averaging", 11};  ///< the root has heard of what the receiver has told it

    static constexpr bool is_own(message_kind kind) { return kind.number <= leaves.number; }
    static constexpr bool has_model(message_kind kind) { return kind == request || kind == answer; }
};

}}}  // namespace rill::RILL_ABI::detail
