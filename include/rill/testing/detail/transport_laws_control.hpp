#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/testing/law.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline call_signature numbered_call(std::uint64_t number, rank_t rank) {
    return {.number = number, .kind = operation::all_reduce, .dimension = 1000 + static_cast<std::uint64_t>(rank)};
}

template <class Net>
void tells_calls(Net& net) {
    for (std::uint64_t number = 1; number <= 3; ++number) {
        net.announce(law_context, numbered_call(number, net.rank()));
        for (rank_t peer = 0; peer < net.size(); ++peer) {
            const auto answer = net.inquire(peer, law_context, number, deadline::never);
            expect(answer.has_value(), "an inquiry without deadline comes back empty");
            expect(*answer == numbered_call(number, peer), "an inquiry answers with another call");
        }
    }
    expect(!net.inquire(net.rank(), law_context, 4, deadline::immediate), "an inquiry answers with an earlier call");
    expect(!net.inquire(net.rank(), law_context + 5, 1, deadline::immediate), "an inquiry looks into other contexts");
}

/// A state is replaced by the next one: an inquiry that waits does not return what an earlier one has heard.
template <class Net>
void tells_states(Net& net) {
    const std::uint64_t context = law_context + 7;
    const channel on{.context = law_context, .tag = 34};
    const auto meet_all = [&] {
        for (rank_t peer = 0; peer < net.size(); ++peer) post_number(net, peer, on, 0);
        for (rank_t peer = 0; peer < net.size(); ++peer) receive_number(net, peer, on);
    };
    for (std::uint64_t state = 1; state <= 3; ++state) {
        net.announce(context, {.number = 1, .dimension = state});
        meet_all();
        for (rank_t peer = 0; peer < net.size(); ++peer) {
            const auto answer = net.inquire(peer, context, 1, deadline::never);
            expect(answer && answer->dimension == state, "an inquiry answers with a state that is past");
            expect(net.inquire(peer, context, 1, deadline::immediate) == answer, "what was heard is forgotten");
        }
        meet_all();
    }
}

/// Announces calls in any order: each is found as long as its number is among the `calls_remembered` highest.
template <class Net>
void remembers_calls(Net& net) {
    const std::uint64_t context = law_context + 6;
    constexpr std::uint64_t first = 100, last = first + calls_remembered - 1;
    const auto announce = [&](std::uint64_t number) { net.announce(context, numbered_call(number, net.rank())); };
    for (std::uint64_t number = first; number <= last; number += 2) announce(number);
    for (rank_t peer = 0; peer < net.size(); ++peer) {
        expect(net.inquire(peer, context, last - 1, deadline::never).has_value(),
               "an inquiry without deadline comes back empty");
        const auto later = net.inquire(peer, context, first + 1, net.now() + microseconds(100));
        expect(later && *later == numbered_call(last - 1, peer),
               "an inquiry whose time is up does not answer with the latest call");
    }
    const channel on{.context = law_context, .tag = 32};
    const rank_t next = (net.rank() + 1) % net.size(), previous = (net.rank() + net.size() - 1) % net.size();
    for (int i = 1; i < net.size(); ++i) {  // all ranks have inquired before any goes on
        post_number(net, next, on, 0);
        receive_number(net, previous, on);
    }
    for (std::uint64_t number = last; number > first; number -= 2) announce(number);
    for (rank_t peer = 0; peer < net.size(); ++peer)
        for (std::uint64_t number = first; number <= last; ++number) {
            const auto answer = net.inquire(peer, context, number, deadline::never);
            expect(answer && *answer == numbered_call(number, peer), "an inquiry answers with another call");
        }
}

template <class Net>
void makes_contexts(Net& net) {
    const std::uint64_t keys[] = {0, 1, 1, 2, 0, 1};
    std::vector<std::uint64_t> made;
    for (const std::uint64_t key : keys) {
        if (net.rank() % 2 == 1) net.next_context(99);  // a key of some ranks only
        made.push_back(net.next_context(key));
    }
    expect(std::set(made.begin(), made.end()).size() == made.size(), "next_context gives a context twice");
    const channel on{.context = law_context, .tag = 30};
    for (const std::uint64_t context : made) {
        const auto low = static_cast<std::uint32_t>(context), high = static_cast<std::uint32_t>(context >> 32);
        for (const std::uint32_t half : {low, high}) {
            post_number(net, (net.rank() + 1) % net.size(), on, half);
            expect_equal(receive_number(net, (net.rank() + net.size() - 1) % net.size(), on), half,
                         "part of a context on another rank");
        }
    }
}

template <class Net>
void agrees_on_the_epoch(Net& net) {
    const channel on{.context = law_context, .tag = 33};
    post_number(net, (net.rank() + 1) % net.size(), on, epoch_of(net));
    expect_equal(receive_number(net, (net.rank() + net.size() - 1) % net.size(), on), epoch_of(net),
                 "the epoch of another rank");
}

template <class Net>
void counts(Net& net) {
    const channel on{.context = law_context, .tag = 31};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    const traffic before = net.counted();
    const buffer lent = pattern(300, 1);
    byte_pieces pieces(byte_view(lent).first(100));
    pieces.push(byte_view(lent).subspan(100));
    auto first = net.post(next, on, pieces);
    auto second = net.post(next, on, byte_view(lent));
    expect(net.post(next, on, pattern(50, 2), deadline::never), "a post without deadline gives up");
    const traffic sent = net.counted() - before;
    expect_equal(sent.messages_sent, std::uint64_t{3}, "messages counted as sent");
    expect_equal(sent.bytes_sent, std::uint64_t{650}, "bytes counted as sent");
    expect_equal(sent.messages_received, std::uint64_t{0}, "messages counted as received before they are");
    buffer into(300);
    const byte_span target(into);
    expect(net.receive_into(previous, on, {&target, 1}, deadline::never), "a message is lost");
    for (int i = 0; i < 2; ++i) expect(net.receive(previous, on, deadline::never).has_value(), "a message is lost");
    expect(!net.receive(previous, on, deadline::immediate), "a message comes twice");
    const traffic all = net.counted() - before;
    expect_equal(all.messages_received, std::uint64_t{3}, "messages counted as received");
    expect_equal(all.bytes_received, std::uint64_t{650}, "bytes counted as received");
    expect(first.wait(deadline::never) && second.wait(deadline::never), "a send that was received is not done");
}

}  // namespace detail

/// Checks the laws of the control channel: `announce`, `inquire`, contexts.
template <class Laws>
void control_laws(const Laws& all) {
    for (const int ranks : {1, 2, 5})
        all.law("an inquiry learns what was announced", ranks, [](auto& net) { detail::tells_calls(net); });
    all.law("an inquiry learns the state that holds", 3, [](auto& net) { detail::tells_states(net); });
    all.law("a transport remembers the latest calls", 3, [](auto& net) { detail::remembers_calls(net); });
    all.law("next_context agrees on all ranks", 3, [](auto& net) { detail::makes_contexts(net); });
    all.law("the epoch is the same on all ranks", 3, [](auto& net) { detail::agrees_on_the_epoch(net); });
    all.law("messages and bytes are counted", 3, [](auto& net) { detail::counts(net); });
}

}}}  // namespace rill::RILL_ABI::testing
