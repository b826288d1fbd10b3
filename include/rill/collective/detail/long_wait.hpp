#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a rank says of a wait that has taken half of its timeout, so that who runs out of it first can find where the
/// standstill begins. It travels as a call announced in a context of its own, under the operation's number.
struct long_wait {
    rank_t peer = no_rank;  ///< whom it waits for: nobody any more
    bool reading = false;   ///< that the peer reads a message of this rank's; else a message of the peer's
    int of_round = 0;       ///< of the message
    int in_round = 0;       ///< where the rank stands: it has sent what it sends up to this round

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

    /// Whether this wait of the peer's is why `other` lasts. A message is sent when its round is entered; it counts as
    /// read only when the peer needs it no more, which may be long after it has come.
    constexpr bool explains(const long_wait& other) const {
        return peer != no_rank && (other.reading || in_round < other.of_round);
    }

    friend constexpr bool operator==(const long_wait&, const long_wait&) = default;
};

}}}  // namespace rill::RILL_ABI::detail
