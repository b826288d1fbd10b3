#pragma once

#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of rounds.
struct round_kind {
    static constexpr message_kind next_round{"rounds", 1};  ///< hands down the state that begins a round
    static constexpr message_kind contribute{"rounds", 2};  ///< sends a contribution to a round
    static constexpr message_kind end_rounds{"rounds", 3};
    static constexpr message_kind round_over{"rounds", 4};  ///< tells a rank that its contribution would come too late
};

}}}  // namespace rill::RILL_ABI::detail
