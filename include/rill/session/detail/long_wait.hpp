#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a rank announces about a wait that has taken half of its timeout, so that a rank whose timeout passes can find
/// where the standstill begins. It is announced as a call in a context of its own, under the operation's number.
struct long_wait {
    rank_t peer = no_rank;  ///< the rank that is waited for; `no_rank`: the wait is over
    bool reading = false;   ///< waits until the peer has read a message of this rank; false: for a message of the peer
    int of_round = 0;       ///< the round of that message
    int in_round = 0;       ///< the round of the waiting rank, which has sent its messages up to this round

    /// Of a rank that takes what comes in any order, so that each wait may be the reason for any other.
    static constexpr long_wait of_any_order(rank_t peer) { return {.peer = peer, .of_round = 1}; }

    constexpr call_signature announced_in(std::uint64_t operation_number) const {
        return {.number = operation_number,
                .dimension = static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)),
                .options = {.hashes = {static_cast<std::uint32_t>(in_round), static_cast<std::uint32_t>(of_round),
                                       reading ? 1U : 0U}}};
    }
    static constexpr long_wait from(const call_signature& announced) {
        const auto& said = announced.options.hashes;
        return {.peer = static_cast<rank_t>(static_cast<std::uint32_t>(announced.dimension)),
                .reading = said[2] != 0,
                .of_round = static_cast<int>(said[1]),
                .in_round = static_cast<int>(said[0])};
    }

    /// Whether this wait is the reason why `other`, a wait for the rank that waits here, lasts. A message is sent when
    /// its round is entered. It counts as read only when the peer no longer needs it, which may be long after its
    /// arrival.
    constexpr bool explains(const long_wait& other) const {
        return peer != no_rank && (other.reading || in_round < other.of_round);
    }

    friend constexpr bool operator==(const long_wait&, const long_wait&) = default;
};

}}}  // namespace rill::RILL_ABI::detail
