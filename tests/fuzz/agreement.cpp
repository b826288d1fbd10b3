// Arbitrary bytes as a message of an agreement of an elastic team: a frame, or a `protocol_error`. What is read is
// written again as it was, and a member's machine stands it, from each rank: nothing that it has committed is taken
// back.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/quorum.hpp>

#include <algorithm>

namespace {

using namespace rill;
using rill::detail::agreement_event;
using rill::detail::agreement_machine;

constexpr int seats = 4;
constexpr rill::detail::agreement_limits limits{
    .repeat = milliseconds(10), .patience = seconds(1), .longest = seconds(10)};

const rill::view known{.epoch = 1, .members = {0, 1, 2}, .incarnations = {5, 6, 7}};

/// A member of `known`, before and during an agreement.
void hear(const rill::detail::agreement_message& told, quorum policy) {
    for (const bool is_frozen : {false, true})
        for (rank_t from = 1; from < seats; ++from) {
            agreement_machine member({.next = known, .step = 2}, 0, policy, limits);
            member.on({.happened = agreement_event::what::prepared}, {});
            if (is_frozen) member.on({.happened = agreement_event::what::ends}, {});
            for (int times = 0; times < 2; ++times) {
                member.on({.happened = agreement_event::what::arrived, .peer = from, .message = &told}, {});
                member.on({.happened = agreement_event::what::tick}, time_point{} + seconds(2));
            }
            RILL_FUZZ_REQUIRE(member.committed() == 2 || member.committed() == 3,
                              "the step that it has prepared, or not");
            RILL_FUZZ_REQUIRE(member.view().epoch >= 1, "no earlier view");
        }
}

}  // namespace

RILL_FUZZ_TARGET(agreement)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const buffer message = rill::fuzz::copy_of(in.rest());
    try {
        const rill::fuzz::allocation_budget at_most(8 * message.size() + rill::fuzz::error_texts);
        (void)rill::detail::read_agreement_frame(message, seats, known);
    } catch (const protocol_error&) {
        return 0;
    }
    const auto frame = rill::detail::read_agreement_frame(message, seats, known);
    if (frame.message.view_is != rill::detail::agreement_message::form::unread) {
        const buffer again = rill::detail::to_message(frame, &known);
        RILL_FUZZ_REQUIRE(std::equal(again.begin(), again.end(), message.begin(), message.end()), "the same bytes");
    }
    for (const quorum policy : {quorum::majority, quorum::refused, quorum::reachable}) hear(frame.message, policy);
    return 0;
}
