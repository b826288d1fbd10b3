// Arbitrary bytes as a message of a state transfer: a note, or a `protocol_error`. What is read is written again as it
// was, and the machines of both sides stand it.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/core/error.hpp>
#include <rill/protocol/detail/state_note.hpp>
#include <rill/protocol/detail/state_transfer_machine.hpp>

#include <algorithm>
#include <optional>

namespace {

using namespace rill;
using rill::detail::state_fetcher;
using rill::detail::state_note;
using rill::detail::state_provider;

constexpr rill::detail::state_transfer_options options{
    .build = 1, .catch_up_bytes = 64, .piece_bytes = 16, .window = 2};

/// A member at step 2 that has a snapshot, and answers.
void serve(const state_note& note) {
    state_provider member(options);
    member.members_are({.epoch = 1, .members = {0, 1}});
    member.committed(1, buffer(8));
    member.committed(2, buffer(40));
    member.take_snapshot(2, buffer(100));
    member.on(2, note, 1);
    std::size_t bytes = 0;
    for (const auto& each : member.letters()) {
        bytes += each.bytes.size();
        const buffer message = to_message(each.note, each.bytes);
        RILL_FUZZ_REQUIRE(rill::detail::read_state_message(message).note == each.note, "an answer that can be read");
    }
    RILL_FUZZ_REQUIRE(bytes <= 100, "no more than there is");
}

/// A rank that joins, or that has missed steps, and hears it.
void hear(const state_note& note, byte_view bytes) {
    for (const std::optional<std::uint64_t> have : {std::optional<std::uint64_t>{}, {2}}) {
        state_fetcher joiner(options, 1, 0, {0, 1}, have);
        joiner.begin({});
        const auto asked = joiner.on(0, note, bytes, {});
        if (asked != state_fetcher::task::replace && asked != state_fetcher::task::apply) continue;
        RILL_FUZZ_REQUIRE(checksum(joiner.item()) == note.checksum && joiner.item().size() == note.size,
                          "a whole item only");
        RILL_FUZZ_REQUIRE(asked == state_fetcher::task::replace || joiner.step() == *have + 1, "updates in order");
        joiner.done({});
    }
}

}  // namespace

RILL_FUZZ_TARGET(state_note)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const buffer message = rill::fuzz::copy_of(in.rest());
    try {
        const rill::fuzz::allocation_budget at_most(rill::fuzz::error_texts);
        (void)rill::detail::read_state_message(message);
    } catch (const protocol_error&) {
        return 0;
    }
    const auto [note, bytes] = rill::detail::read_state_message(message);
    const buffer again = to_message(note, bytes);
    RILL_FUZZ_REQUIRE(std::equal(again.begin(), again.end(), message.begin(), message.end()), "the same bytes");
    const rill::fuzz::allocation_budget at_most(16 * message.size() + 8 * rill::fuzz::error_texts);
    serve(note);
    hear(note, bytes);
    return 0;
}
