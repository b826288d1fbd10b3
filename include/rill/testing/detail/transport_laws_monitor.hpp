#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline constexpr std::uint64_t open_context = law_context + 40;  // in which rank 0 monitors
inline constexpr channel monitored{.context = open_context, .tag = 0};

/// The next that `net` is told of `peer`.
template <class Net>
void expect_told(Net& net, rank_t peer, channel on, const peer_event& event, const char* what) {
    const auto told = net.receive(peer, on, deadline::never);
    expect(told.has_value() && told->source() == peer, "a monitored channel tells of another peer");
    expect(read_peer_event(*told) == event, what);
}

/// Whether a receive throws `peer_failure` that names the first of `peers`.
template <class Net>
void expect_in_vain(Net& net, std::span<const rank_t> peers, channel on, deadline until) {
    try {
        net.receive(peers, on, until);
    } catch (const peer_failure& thrown) {
        expect(thrown.culprit() == peers[0] && thrown.notice().context == on.context, "it names another rank");
        return;
    }
    expect(false, "a receive waits for peers that have all ended");
}

template <class Net>
std::vector<rank_t> others(const Net& net) {
    std::vector<rank_t> all;
    for (rank_t peer = 0; peer < net.size(); ++peer)
        if (peer != net.rank()) all.push_back(peer);
    return all;
}

/// The others post and end; rank 0 hears of each end after all else. It begins to monitor before that, or after it.
template <class Net>
void tells_of_ends(Net& net, bool beforehand) {
    const channel first{law_context, 1}, second{open_context, 2}, ready{law_context + 1, 3};
    if (net.rank() > 0) {
        if (beforehand) receive_number(net, 0, ready);
        for (std::uint32_t i = 0; i < 20; ++i) post_number(net, 0, i % 2 == 0 ? first : second, i);
        return;
    }
    if (beforehand) net.monitor(monitored);
    for (const rank_t peer : others(net))
        if (beforehand) post_number(net, peer, ready, 0);
    if (!beforehand) {
        for (const rank_t peer : others(net))
            expect(net.inquire(peer, law_context, 1, deadline::never)->kind == operation::departure, "it has ended");
        net.monitor(monitored);
    }
    for (const rank_t peer : others(net)) {
        const std::uint64_t life = net.incarnation(peer);
        expect(life != 0, "a rank that has lived has incarnation 0");
        expect_told(net, peer, monitored, {peer_change::ended, life}, "a rank has ended, and something else is told");
        for (std::uint32_t i = 0; i < 20; ++i) {
            const auto came = net.receive(peer, i % 2 == 0 ? first : second, deadline::immediate);
            expect(came.has_value(), "an end overtakes a message");
            expect_equal(number_in(*came), i, "messages before an end");
        }
    }
    expect_in_vain(net, others(net), second, deadline::never);
    expect_in_vain(net, others(net), second, deadline::immediate);
    expect(!net.receive(1, monitored, net.now() + milliseconds(1)), "an end is told twice");
    expect(!net.receive(1, first, net.now() + milliseconds(1)), "a message comes twice");  // there nobody monitors
}

/// A receive that has begun to wait ends when the last of its peers ends.
template <class Net>
void ends_receives_in_vain(Net& net) {
    if (net.rank() > 0) return;
    const channel waiting{open_context, 7};
    net.monitor(monitored);
    expect_in_vain(net, others(net), waiting, deadline::never);
    net.close(open_context);
    expect(!net.receive(1, waiting, deadline::immediate), "a context is monitored after it has been closed");
}

/// Rank 1 has sent and goes on to send: nothing of it arrives, nor does its end. Rank 2 is not touched.
template <class Net>
void fences(Net& net) {
    const channel numbers{law_context, 1}, gate{law_context + 1, 2};
    if (net.rank() > 0) {
        post_number(net, 0, numbers, 5);
        post_number(net, 0, gate, 0);
        receive_number(net, 0, gate);
        for (std::uint32_t i = 0; i < 5; ++i) post_number(net, 0, numbers, i);
        return;
    }
    net.monitor(monitored);
    for (const rank_t peer : others(net)) receive_number(net, peer, gate);
    net.fence(1, net.incarnation(1));
    net.fence(1, net.incarnation(1));
    for (const rank_t peer : others(net)) post_number(net, peer, gate, 0);
    expect_told(net, 2, monitored, {peer_change::ended, net.incarnation(2)}, "a fence holds back another rank");
    expect_equal(receive_number(net, 2, numbers), 5U, "a fence holds back another rank");
    for (std::uint32_t i = 0; i < 5; ++i) expect_equal(receive_number(net, 2, numbers), i, "a message of rank 2");
    expect(!net.receive(1, numbers, net.now() + milliseconds(2)), "a message passes a fence");
    const rank_t one = 1;
    expect_in_vain(net, {&one, 1}, channel{open_context, 8}, deadline::never);
}

/// All know a rank by the same number.
template <class Net>
void has_one_incarnation(Net& net) {
    const channel on{law_context, 1};
    const auto low = [](std::uint64_t life) { return static_cast<std::uint32_t>(life); };
    for (rank_t of = 0; of < net.size(); ++of)
        for (rank_t peer = 0; peer < net.size(); ++peer) post_number(net, peer, on, low(net.incarnation(of)));
    for (rank_t of = 0; of < net.size(); ++of)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            expect_equal(receive_number(net, peer, on), low(net.incarnation(of)), "incarnation on another rank");
    meet(net, 1);
}

}  // namespace detail

/// Laws of `MonitoredTransport`.
template <class Laws>
void monitor_laws(const Laws& all) {
    const auto law = [&](const char* name, int ranks, auto body) {
        all.law(name, ranks, [body](auto& net) {
            if constexpr (MonitoredTransport<std::remove_reference_t<decltype(net)>>) body(net);
        });
    };
    for (const bool beforehand : {true, false})
        law("an end comes after all else", 4, [beforehand](auto& net) { detail::tells_of_ends(net, beforehand); });
    law("a receive ends with the last of its peers", 3, [](auto& net) { detail::ends_receives_in_vain(net); });
    law("nothing passes a fence", 3, [](auto& net) { detail::fences(net); });
    law("an incarnation is the same for all", 3, [](auto& net) { detail::has_one_incarnation(net); });
}

}}}  // namespace rill::RILL_ABI::testing
