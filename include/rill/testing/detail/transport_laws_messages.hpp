#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

template <class Net>
using sending_of = typename Net::sending;

inline std::vector<rank_t> all_ranks(int size) {
    std::vector<rank_t> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), rank_t{0});
    return ranks;
}

/// Every rank posts `size` bytes to every rank, itself included, then receives from each.
template <class Net>
void exchange_with_all(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 1};
    const buffer mine = pattern(size, static_cast<std::uint64_t>(net.rank()));
    std::vector<sending_of<Net>> sends;
    sends.reserve(static_cast<std::size_t>(net.size()));
    for (rank_t peer = 0; peer < net.size(); ++peer) sends.push_back(net.post(peer, on, byte_view(mine)));
    for (rank_t peer = 0; peer < net.size(); ++peer) {
        const auto message = net.receive(peer, on, deadline::never);
        expect(message && message->source() == peer, "a message names another source");
        expect(is_pattern(message->pieces(), size, static_cast<std::uint64_t>(peer)),
               "a message arrives with other bytes");
    }
    for (auto& each : sends) expect(each.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void pass_around_ring(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 2};
    const int ranks = net.size();
    const buffer mine = pattern(size, 7);
    auto sent = net.post((net.rank() + 1) % ranks, on, byte_view(mine));
    buffer incoming(size);
    const byte_span target(incoming);
    expect(net.receive_into((net.rank() + ranks - 1) % ranks, on, {&target, 1}, deadline::never),
           "a receive without deadline comes back empty");
    expect(incoming == mine, "a message arrives with other bytes");
    expect(sent.wait(deadline::never), "a send that was received is not done");
}

/// Two ranks post, then receive: this rank posts `size` bytes, the other one `theirs`.
template <class Net>
void crosses(Net& net, std::size_t size, std::size_t theirs) {
    const channel on{.context = law_context, .tag = 2};
    const rank_t other = 1 - net.rank();
    const buffer mine = pattern(size, 7);
    auto sent = net.post(other, on, byte_view(mine));
    {
        const auto message = net.receive(other, on, deadline::never);
        expect(message.has_value(), "a receive without deadline comes back empty");
        expect(is_pattern(message->pieces(), theirs, 7), "a message arrives with other bytes");
    }
    expect(sent.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void keeps_order(Net& net) {
    constexpr std::uint32_t count = 50;
    for (std::uint32_t i = 0; i < count; ++i)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            for (std::uint32_t tag = 0; tag < 2; ++tag)
                post_number(net, peer, {.context = law_context, .tag = tag}, 2 * i + tag);
    for (std::uint32_t tag = 2; tag-- > 0;)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            for (std::uint32_t i = 0; i < count; ++i)
                expect_equal(receive_number(net, peer, {.context = law_context, .tag = tag}), 2 * i + tag,
                             "messages of one sender and channel change their order");
}

/// Borrowed and handed-over messages share one order.
template <class Net>
void keeps_order_of_both_kinds(Net& net) {
    const channel on{.context = law_context, .tag = 3};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    const buffer lent[2] = {number_message(0), number_message(2)};
    auto first = net.post(next, on, byte_view(lent[0]));
    post_number(net, next, on, 1);
    auto third = net.post(next, on, byte_view(lent[1]));
    post_number(net, next, on, 3);
    for (std::uint32_t i = 0; i < 4; ++i)
        expect_equal(receive_number(net, previous, on), i, "lent and handed-over messages change their order");
    expect(first.wait(deadline::never) && third.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void separates_channels(Net& net) {
    const channel channels[] = {{law_context, 0}, {law_context, 1}, {law_context + 5, 0}, {law_context + 5, 1}};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    for (std::uint32_t i = 0; i < 3; ++i) post_number(net, next, channels[i], i);
    for (std::uint32_t i = 3; i-- > 0;)
        expect_equal(receive_number(net, previous, channels[i]), i, "a message comes by another channel");
    meet(net, 0);
    for (const channel on : channels)
        expect(!net.receive(previous, on, deadline::immediate), "a message comes by a channel nobody used");
}

template <class Net>
void takes_from_any(Net& net) {
    const channel on{.context = law_context, .tag = 4};
    constexpr std::uint32_t each = 5;
    if (net.rank() != 0) {
        for (std::uint32_t i = 0; i < each; ++i) post_number(net, 0, on, i);
        return;
    }
    std::vector<rank_t> peers;
    for (rank_t rank = 1; rank < net.size(); ++rank) peers.push_back(rank);
    std::vector<std::uint32_t> seen(static_cast<std::size_t>(net.size()));
    for (std::size_t i = 0; i < peers.size() * each; ++i) {
        const auto message = net.receive(peers, on, deadline::never);
        expect(message && message->source() > 0 && message->source() < net.size(), "any-of-set names a foreign source");
        expect_equal(number_in(*message), seen[static_cast<std::size_t>(message->source())]++,
                     "any-of-set loses the order of a source");
    }
}

template <class Net>
void leaves_others_alone(Net& net) {
    const channel on{.context = law_context, .tag = 5};
    if (net.rank() != 0) return post_number(net, 0, on, static_cast<std::uint32_t>(net.rank()));
    std::vector<rank_t> odd, even;
    for (rank_t rank = 1; rank < net.size(); ++rank) (rank % 2 == 1 ? odd : even).push_back(rank);
    for (const auto* set : {&even, &odd})
        for (std::size_t i = 0; i < set->size(); ++i) {
            const auto message = net.receive(*set, on, deadline::never);
            expect(message && message->source() % 2 == set->front() % 2, "a message comes from outside the set");
        }
}

template <class Net>
void takes_latest(Net& net) {
    const channel on{.context = law_context, .tag = 8};
    const channel other{.context = law_context, .tag = 9};
    if (net.rank() != 0) {
        for (std::uint32_t i = 0; i < 4; ++i) post_number(net, 0, on, i);
        post_number(net, 0, other, 9);
        return meet(net, 0);
    }
    meet(net, 0);
    for (rank_t peer = 1; peer < net.size(); ++peer) {
        // The meeting does not imply that all messages have arrived: only messages of one channel are ordered.
        std::uint32_t newest = 0;
        while (newest != 3) {
            const auto message = net.receive_latest({&peer, 1}, on, deadline::never);
            expect(message && message->source() == peer, "receive_latest names another source");
            const std::uint32_t value = number_in(*message);
            expect(newest <= value, "receive_latest goes back in time");
            newest = value;
        }
        expect(!net.receive(peer, on, deadline::immediate), "receive_latest leaves an older message");
        expect_equal(receive_number(net, peer, other), 9U, "receive_latest takes from another channel");
    }
    const auto peers = all_ranks(net.size());
    expect(!net.receive_latest(peers, on, deadline::immediate), "receive_latest makes up a message");
}

template <class Net>
void takes_itself(Net& net) {
    const channel on{.context = law_context, .tag = 10};
    const buffer lent = pattern(100'000, 3);
    auto sent = net.post(net.rank(), on, byte_view(lent));
    post_number(net, net.rank(), on, 5);
    {
        const auto message = net.receive(net.rank(), on, deadline::never);
        expect(message && message->source() == net.rank(), "a message to itself has another source");
        expect(same_bytes(message->pieces(), lent), "a message to itself arrives with other bytes");
    }
    expect(sent.wait(deadline::never) && sent.done(), "a message to itself is never done");
    expect_equal(receive_number(net, net.rank(), on), 5U, "the second message to itself");
}

template <class Net>
void carries_nothing(Net& net) {
    const channel on{.context = law_context, .tag = 11};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    auto no_piece = net.post(next, on, byte_pieces());
    auto empty_piece = net.post(next, on, byte_view());
    expect(net.post(next, on, buffer()), "an empty message does not fit into a mailbox");
    auto into = net.post(next, on, byte_view());
    for (int i = 0; i < 3; ++i) {
        const auto message = net.receive(previous, on, deadline::never);
        expect(message && message->pieces().size_bytes() == 0, "an empty message arrives with bytes");
    }
    expect(net.receive_into(previous, on, {}, deadline::never), "an empty message is not received into nothing");
    expect(no_piece.wait(deadline::never) && empty_piece.wait(deadline::never) && into.wait(deadline::never),
           "an empty send that was received is not done");
}

template <class Net>
void carries_pieces(Net& net) {
    const channel on{.context = law_context, .tag = 12};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    const buffer whole = pattern(5003, 4);
    const byte_view bytes(whole);
    byte_pieces pieces;
    pieces.push(bytes.first(3));
    pieces.push({});
    pieces.push(bytes.subspan(3, 1000));
    pieces.push(bytes.subspan(1003));
    auto first = net.post(next, on, pieces);
    auto second = net.post(next, on, pieces);
    {
        const auto message = net.receive(previous, on, deadline::never);
        expect(message && same_bytes(message->pieces(), whole), "the pieces of a message change or swap");
    }
    buffer parts(5003);
    const byte_span into(parts);
    const byte_span targets[] = {into.first(1), into.subspan(1, 2500), {}, into.subspan(2501)};
    expect(net.receive_into(previous, on, targets, deadline::never), "a receive without deadline comes back empty");
    expect(parts == whole, "receive_into writes the pieces of a message to other places");
    expect(first.wait(deadline::never) && second.wait(deadline::never), "a send that was received is not done");
}

template <class Net>
void refuses_wrong_sizes(Net& net) {
    const channel on{.context = law_context, .tag = 13};
    for (const std::size_t wrong : {std::size_t{3}, std::size_t{5}, std::size_t{0}}) {
        post_number(net, net.rank(), on, 1);
        post_number(net, net.rank(), on, 2);
        buffer into(wrong);
        const byte_span target(into);
        bool refused = false;
        try {
            net.receive_into(net.rank(), on, {&target, 1}, deadline::never);
        } catch (const protocol_error&) {
            refused = true;
        }
        expect(refused, "receive_into takes a message of another size");
        expect_equal(receive_number(net, net.rank(), on), 2U, "after a refused message, the next one");
    }
}

template <class Net>
void sends_until_released(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 14};
    const channel signal{.context = law_context, .tag = 15};
    if (net.rank() == 0) {
        buffer lent = pattern(size, 1);
        auto sent = net.post(1, on, byte_view(lent));
        expect(!sent.done(), "a send is done before it is received");
        expect(!sent.wait(deadline::immediate), "a send is done before it is received");
        post_number(net, 1, signal, 0);
        expect(sent.wait(deadline::never) && sent.done(), "a received send is not done");
        lent = pattern(size, 2);
        sent = net.post(1, on, byte_view(lent));
        expect(sent.wait(deadline::never), "a received send is not done");
    } else if (net.rank() == 1) {
        receive_number(net, 0, signal);
        {
            const auto message = net.receive(0, on, deadline::never);
            expect(message && is_pattern(message->pieces(), size, 1), "lent bytes change while they are read");
        }
        const auto message = net.receive(0, on, deadline::never);
        expect(message && is_pattern(message->pieces(), size, 2), "reused bytes arrive in their old state");
    }
}

template <class Net>
void withdraws(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 16};
    const buffer lent = pattern(size, 1);
    const auto dropped = [&](auto end) {
        const rank_t next = (net.rank() + 1) % net.size();
        const rank_t previous = (net.rank() + net.size() - 1) % net.size();
        auto sent = net.post(next, on, byte_view(lent));
        end(sent);
        post_number(net, next, on, 2);
        meet(net, 0);  // nobody receives before it is withdrawn
        expect_equal(receive_number(net, previous, on), 2U, "a withdrawn message");
        expect(!net.receive(previous, on, deadline::immediate), "a withdrawn message comes late");
        meet(net, 1);
    };
    dropped([](auto& sent) { [[maybe_unused]] const auto ended = std::move(sent); });
    dropped([](auto& sent) { sent.settle(); });
    dropped([](auto& sent) { sent = {}; });
    auto none = sending_of<Net>();
    none.settle();
    expect(none.done() && none.wait(deadline::immediate), "a default-constructed sending is not done");
}

/// A send ends while its message is being read. The reader keeps valid bytes, because settle() waits for it.
template <class Net>
void settles_after_reading(Net& net, std::size_t size) {
    const channel on{.context = law_context, .tag = 17};
    const channel signal{.context = law_context, .tag = 18};
    if (net.rank() == 0) {
        {
            const buffer lent = pattern(size, 1);
            auto sent = net.post(1, on, byte_view(lent));
            receive_number(net, 1, signal);
            sent.settle();
            expect(sent.done(), "a settled send is not done");
        }
        post_number(net, 1, signal, 0);
    } else if (net.rank() == 1) {
        {
            const auto message = net.receive(0, on, deadline::never);
            post_number(net, 0, signal, 0);
            net.sleep_until(net.now() + microseconds(100));
            expect(message && is_pattern(message->pieces(), size, 1), "settle() does not wait for the reader");
        }
        receive_number(net, 0, signal);
    }
}

}  // namespace detail

/// Checks the laws of messages: order, content, sizes, sources, and counts.
template <class Laws>
void message_laws(const Laws& all) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
        all.law("messages of one channel keep their order", ranks, [](auto& net) { detail::keeps_order(net); });
        all.law("post, then receive, with all", ranks, [](auto& net) { detail::exchange_with_all(net, 1000); });
    }
    all.law("lent and handed-over messages share one order", 3,
            [](auto& net) { detail::keeps_order_of_both_kinds(net); });
    all.law("channels never meet", 3, [](auto& net) { detail::separates_channels(net); });
    all.law("any-of-set takes from all and names the source", 5, [](auto& net) { detail::takes_from_any(net); });
    all.law("any-of-set leaves others alone", 5, [](auto& net) { detail::leaves_others_alone(net); });
    all.law("receive_latest takes the newest and drops the others", 3, [](auto& net) { detail::takes_latest(net); });
    all.law("a rank posts to itself", 2, [](auto& net) { detail::takes_itself(net); });
    all.law("messages may be empty", 2, [](auto& net) { detail::carries_nothing(net); });
    all.law("pieces arrive in order", 2, [](auto& net) { detail::carries_pieces(net); });
    all.law("receive_into refuses other sizes", 1, [](auto& net) { detail::refuses_wrong_sizes(net); });
    const std::size_t lent = detail::lent_size(all.limits());
    if (all.limits().lends || all.limits().copied_bytes > 0)
        all.law("a send is done after it was received", 2,
                [lent](auto& net) { detail::sends_until_released(net, lent); });
    for (const int ranks : {1, 2})
        all.law("a withdrawn message is never seen", ranks, [lent](auto& net) { detail::withdraws(net, lent); });
    all.law("settle waits for the reader", 2, [lent](auto& net) { detail::settles_after_reading(net, lent); });
    all.law("post, then receive, large messages with all", 3,
            [size = all.limits().large_bytes](auto& net) { detail::exchange_with_all(net, size); });
    all.law("the largest message crosses a small one", 2, [size = all.limits().largest_bytes](auto& net) {
        net.rank() == 0 ? detail::crosses(net, size, 1) : detail::crosses(net, 1, size);
    });
    all.law("post, then receive, large messages around a ring", 3,
            [size = all.limits().large_bytes](auto& net) { detail::pass_around_ring(net, size); });
    all.law("post, then receive, around the largest ring", all.limits().most_ranks, [](auto& net) {
        for (int round = 0; round < 20; ++round) detail::pass_around_ring(net, 100);
    });
}

}}}  // namespace rill::RILL_ABI::testing
