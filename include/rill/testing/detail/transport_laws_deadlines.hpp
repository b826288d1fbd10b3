#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

template <class Net>
void gives_up(Net& net, deadline until) {
    const channel on{.context = law_context, .tag = 20};
    const rank_t self = net.rank();
    expect(!net.receive(self, on, until), "a receive makes up a message");
    expect(!net.receive(std::span(&self, 1), on, until), "any-of-set makes up a message");
    expect(!net.receive(std::span<const rank_t>(), on, until), "a receive from nobody makes up a message");
    expect(!net.receive_latest(std::span(&self, 1), on, until), "receive_latest makes up a message");
    expect(!net.receive_into(self, on, {}, until), "receive_into makes up a message");
    expect(!net.inquire(self, on.context + 100, 1, until), "inquire makes up a call");
    if (!until.is_immediate()) expect(net.now() >= until.at, "a wait gives up before its deadline");
}

template <class Net>
void gives_up_in_time(Net& net) {
    gives_up(net, deadline::immediate);
    gives_up(net, net.now());
    gives_up(net, net.now() + microseconds(200));
    const time_point later = net.now() + microseconds(200);
    net.sleep_until(later);
    expect(net.now() >= later, "sleep_until wakes early");
}

template <class Net>
void receives_after_giving_up(Net& net) {
    const channel on{.context = law_context, .tag = 21};
    const channel signal{.context = law_context, .tag = 22};
    if (net.rank() == 0) {
        expect(!net.receive(1, on, net.now() + microseconds(100)), "a message comes before it is sent");
        post_number(net, 1, signal, 0);
        expect_equal(receive_number(net, 1, on), 5U, "the message after a deadline");
    } else if (net.rank() == 1) {
        receive_number(net, 0, signal);
        post_number(net, 0, on, 5);
    }
}

template <class Net>
void polls(Net& net) {
    const channel on{.context = law_context, .tag = 23};
    if (net.rank() != 0) return post_number(net, 0, on, 6);
    while (true) {
        if (const auto message = net.receive(1, on, deadline::immediate)) {
            expect_equal(number_in(*message), 6U, "a polled message");
            return;
        }
        net.sleep_until(net.now() + microseconds(50));
    }
}

template <class Net>
void sends_to_nobody_waiting(Net& net) {
    const channel on{.context = law_context, .tag = 24};
    for (rank_t peer = 0; peer < net.size(); ++peer)
        for (std::uint32_t i = 0; i < 20; ++i) post_number(net, peer, on, i);
    if (net.rank() == 0) net.close(on.context);
}

template <class Net>
void drops_on_close(Net& net) {
    const channel closing{.context = law_context, .tag = 25};
    const channel staying{.context = law_context + 5, .tag = 25};
    post_number(net, net.rank(), closing, 1);
    post_number(net, net.rank(), staying, 2);
    net.close(closing.context);
    expect(!net.receive(net.rank(), closing, deadline::immediate), "a message outlives its context");
    expect_equal(receive_number(net, net.rank(), staying), 2U, "after another context is closed, a message");
}

template <class Net>
bool refused_intact(Net& net, channel on, std::size_t size, deadline until) {
    buffer bytes = pattern(size, 8);
    if (net.post(net.rank(), on, std::move(bytes), until)) return false;
    // NOLINTNEXTLINE(bugprone-use-after-move): the law says that a refusal moves nothing
    expect(bytes == pattern(size, 8), "a refused buffer is changed");
    return true;
}

template <class Net>
void bounds_mailboxes(Net& net, std::size_t bound) {
    const channel on{.context = law_context, .tag = 26};
    const rank_t self = net.rank();
    const std::size_t half = bound / 2;
    const auto take = [&] { expect(net.receive(self, on, deadline::never).has_value(), "a message is lost"); };
    expect(net.post(self, on, pattern(half, 1)) && net.post(self, on, pattern(bound - half, 2)),
           "a mailbox with room refuses a message");
    expect(refused_intact(net, on, 1, deadline::immediate), "a full mailbox takes a message");
    expect(refused_intact(net, on, 1, net.now() + microseconds(100)), "a full mailbox takes a message");
    const buffer lent = pattern(bound, 3);
    auto sent = net.post(self, {on.context, on.tag + 1}, byte_view(lent));
    expect(net.receive(self, {on.context, on.tag + 1}, deadline::never).has_value(), "a lent message needs room");
    take();
    expect(net.post(self, on, pattern(half, 4)), "room is not given back");
    expect(refused_intact(net, on, 1, deadline::immediate), "a full mailbox takes a message");
    take();
    expect(refused_intact(net, on, 2 * bound, deadline::immediate), "a message above the bound fills a mailbox");
    take();
    expect(net.post(self, on, pattern(2 * bound, 5)), "an empty mailbox refuses a message above its bound");
    expect(refused_intact(net, on, 1, deadline::immediate), "a full mailbox takes a message");
    take();
}

template <class Net>
void waits_for_room(Net& net, std::size_t bound) {
    const channel on{.context = law_context, .tag = 28};
    constexpr std::uint64_t count = 10;
    if (net.rank() != 0) {
        for (std::uint64_t i = 0; i < count; ++i)
            expect(net.post(0, on, pattern(bound / 2 + 1, i), deadline::never), "a post without deadline gives up");
        return;
    }
    for (std::uint64_t i = 0; i < count; ++i)
        for (rank_t peer = 1; peer < net.size(); ++peer) {
            const rank_t peers[] = {1, 2};
            const auto message = net.receive(peers, on, deadline::never);
            expect(message && message->pieces().size_bytes() == bound / 2 + 1, "a message is lost");
        }
}

template <class Net>
void frees_room_on_close(Net& net, std::size_t bound) {
    expect(net.post(net.rank(), {law_context, 0}, pattern(bound, 1)), "an empty mailbox refuses a message");
    net.close(law_context);
    expect(net.post(net.rank(), {law_context + 5, 0}, pattern(bound, 1)), "a closed context keeps its room");
}

}  // namespace detail

/// Checks the laws of deadlines and of full mailboxes.
template <class Laws>
void deadline_laws(const Laws& all) {
    all.law("a passed deadline is an empty result", 2, [](auto& net) { detail::gives_up_in_time(net); });
    all.law("a message is received after a deadline has passed", 2,
            [](auto& net) { detail::receives_after_giving_up(net); });
    all.law("an immediate deadline polls", 2, [](auto& net) { detail::polls(net); });
    all.law("messages that nobody receives hold nobody up", 3, [](auto& net) { detail::sends_to_nobody_waiting(net); });
    all.law("close drops the messages of its context", 1, [](auto& net) { detail::drops_on_close(net); });
    const std::size_t bound = all.limits().mailbox_bytes;
    if (bound == 0) return;
    all.law("mailboxes are bounded", 1, [bound](auto& net) { detail::bounds_mailboxes(net, bound); });
    all.law("a post waits for room", 3, [bound](auto& net) { detail::waits_for_room(net, bound); });
    all.law("close gives room back", 1, [bound](auto& net) { detail::frees_room_on_close(net, bound); });
}

}}}  // namespace rill::RILL_ABI::testing
