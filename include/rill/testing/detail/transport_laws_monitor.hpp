#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/detail/transport_laws_abort.hpp>
#include <rill/testing/detail/transport_laws_expect.hpp>
#include <rill/testing/law.hpp>

#include <cstdint>
#include <span>
#include <stdexcept>
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

/// Rank 3 throws. Ranks 0 and 1 monitor, and go on together; rank 2 does not, and ends.
template <class Net>
void goes_on_without(Net& net, const char* reason, run_witness& seen) {
    constexpr rank_t thrower = 3, ends = 2;
    const channel gate{law_context, 1}, numbers{law_context + 1, 2}, beside{open_context, 3};
    if (net.rank() == thrower) {
        for (const rank_t peer : {0, 1}) receive_number(net, peer, gate);
        for (const rank_t peer : {0, 1}) post_number(net, peer, numbers, 5);
        throw std::out_of_range(reason);
    }
    const auto is_blamed = [&](const channel on) {
        try {
            net.receive(net.rank() == ends ? ends : thrower, on, deadline::never);
        } catch (const peer_failure& heard) {
            if (!tells_of(heard, thrower, on == beside ? "" : reason)) return false;
            if (net.rank() == ends) seen.is_informed(ends);
            if (net.rank() == ends) throw;
            return heard.notice().context == on.context;
        }
        return false;
    };
    if (net.rank() == ends) return expect(is_blamed(gate), "an exception does not end a rank that does not monitor");
    net.monitor(monitored);
    post_number(net, thrower, gate, 0);
    expect_told(net, thrower, monitored, {peer_change::ended, net.incarnation(thrower)},
                "a rank has thrown, and something else is told");
    expect_equal(receive_number(net, thrower, numbers), 5U, "the last message of a rank that throws");
    expect(is_blamed(numbers), "a receive from a rank that has thrown waits, or does not say why it ends");
    expect(is_blamed(beside), "a receive from a rank that has thrown waits, in a context that is monitored");
    const auto left = net.inquire(thrower, law_context + 2, 1, deadline::never);
    expect(left && left->kind == operation::departure, "a rank that has thrown does not count as one that has left");
    expect(!net.aborted(every_context), "an exception ends a rank that monitors");
    for (const std::uint64_t context : {law_context, open_context + 1}) {
        const channel on{context, 4};
        post_number(net, 1 - net.rank(), on, 7);
        expect_equal(receive_number(net, 1 - net.rank(), on), 7U, "a message between ranks that go on");
    }
    const channel received{law_context, 5};
    net.rank() == 0 ? post_number(net, 1, received, 1) : static_cast<void>(receive_number(net, 0, received));
    const abort_notice own = law_notice(open_context + 1, 1);
    if (net.rank() == 1) expect(net.abort(own) == own, "an abort counts for nothing after an exception");
    expect_ended(own, "an abort ends nothing after an exception", [&] {
        net.receive(net.rank(), {open_context + 1, 4}, deadline::never);
    });
    seen.is_informed(net.rank());
}
template <class Runner>
void ends_for_who_monitors(Runner& runner, bool one_process) {
    constexpr int ranks = 4;
    const char* const reason = "index 8 is out of range";
    const auto monitored_runs = [&](int count, auto body) {
        runner(count, [&](auto& net) {
            if constexpr (MonitoredTransport<std::remove_reference_t<decltype(net)>>) body(net);
        });
    };
    run_witness seen(ranks);
    expect_rethrown(monitored_runs, ranks, 3, reason, seen, [&](auto& net) { goes_on_without(net, reason, seen); });
    if (seen.has_any()) seen.expect_all_informed(3, one_process);
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
    all.law_of_run(
        "an exception is an end for who monitors", 4,
        [one_process = all.limits().one_process](auto& runner) { detail::ends_for_who_monitors(runner, one_process); });
    law("an incarnation is the same for all", 3, [](auto& net) { detail::has_one_incarnation(net); });
}

}}}  // namespace rill::RILL_ABI::testing
