#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/detail/transport_laws_abort.hpp>
#include <rill/testing/law.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

/// Several activities of each rank receive at once, each on a channel of its own.
template <class Net>
void receives_in_activities(Net& net) {
    constexpr std::uint32_t activities = 3, count = 20;
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    std::vector<typename Net::activity> running;
    for (std::uint32_t tag = 0; tag < activities; ++tag)
        running.push_back(net.spawn([&net, previous, tag] {
            for (std::uint32_t i = 0; i < count; ++i)
                expect_equal(receive_number(net, previous, {law_context, tag}), 10 * i + tag,
                             "a message of another activity");
        }));
    for (std::uint32_t i = 0; i < count; ++i)
        for (std::uint32_t tag = activities; tag-- > 0;) post_number(net, next, {law_context, tag}, 10 * i + tag);
    for (auto& each : running) each.join();
}

template <class Net>
void posts_in_activities(Net& net) {
    const channel on{.context = law_context, .tag = 50};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    auto sender = net.spawn([&] {
        const buffer lent = pattern(2000, 5);
        for (int i = 0; i < 20; ++i) {
            auto sent = net.post(next, on, byte_view(lent));
            expect(sent.wait(deadline::never), "a wait without deadline gives up");
        }
    });
    for (int i = 0; i < 20; ++i) {
        const auto message = net.receive(previous, on, deadline::never);
        expect(message && is_pattern(message->pieces(), 2000, 5), "a message arrives with other bytes");
    }
    sender.join();
}

template <class Net>
void signals(Net& net) {
    typename Net::event there{net}, back{net};
    int shared = 0;
    expect(!there.wait(deadline::immediate), "an event is set from the start");
    expect(!there.wait(net.now() + microseconds(100)), "an event sets itself");
    auto other = net.spawn([&] {
        for (int i = 1; i <= 10; ++i) {
            expect(there.wait(deadline::never), "a wait without deadline gives up");
            there.reset();
            expect_equal(shared, i, "what was written before an event was set");
            shared = -i;
            back.set();
        }
    });
    for (int i = 1; i <= 10; ++i) {
        shared = i;
        there.set();
        expect(back.wait(deadline::never), "a wait without deadline gives up");
        back.reset();
        expect_equal(shared, -i, "what was written before an event was set");
    }
    other.join();
    back.set();
    expect(back.wait(deadline::immediate) && back.wait(deadline::immediate), "a wait resets an event");
}

template <class Net>
void queues(Net& net) {
    typename Net::template queue<int> values{net};
    expect(!values.pop(deadline::immediate), "a queue makes up a value");
    expect(!values.pop(net.now() + microseconds(100)), "a queue makes up a value");
    int taken = 0;
    auto consumer = net.spawn([&] {
        while (const auto value = values.pop(deadline::never)) expect_equal(*value, taken++, "value of a queue");
    });
    for (int i = 0; i < 50; ++i) values.push(i);
    values.close();
    consumer.join();
    expect_equal(taken, 50, "values taken from a queue before its end");
    expect(!values.pop(deadline::never), "a closed queue makes up a value");
}

template <class Net>
void identifies_activities(Net& net) {
    const void* const own = net.this_activity();
    typename Net::template queue<const void*> identities{net};
    typename Net::event end{net};
    std::vector<const void*> known{own};
    std::vector<typename Net::activity> running;
    for (int i = 0; i < 3; ++i) {
        running.push_back(net.spawn([&] {
            const void* const self = net.this_activity();
            identities.push(self);
            end.wait(deadline::never);
            expect(net.this_activity() == self, "an activity has another identity after a wait");
        }));
        const auto identity = identities.pop(deadline::never);
        for (const void* const other : known) expect(identity != other, "two activities have one identity");
        known.push_back(*identity);
    }
    expect(net.this_activity() == own, "a rank's body has another identity after a wait");
    end.set();
    for (auto& each : running) each.join();
}

template <class Net>
void ends_meetings(Net& net) {
    typename Net::event never_set{net};
    typename Net::template queue<int> never_filled{net};
    typename Net::event set{net};
    typename Net::template queue<int> closed{net};
    set.set();
    closed.push(7);
    closed.close();
    auto other = net.spawn([&] {
        expect_ended(law_notice(every_context, net.size() - 1), "queue.pop() survives an abort",
                     [&] { never_filled.pop(deadline::never); });
    });
    ends_waits(net, every_context, "event.wait() survives an abort", [&] { never_set.wait(deadline::never); });
    other.join();
    expect(set.wait(deadline::never), "an event that is set is not so after an abort");
    expect_equal(closed.pop(deadline::never).value_or(0), 7, "a queue's value after an abort");
    expect(!closed.pop(deadline::never), "a closed queue does not end after an abort");
}

template <class Net>
void rethrows_on_join(Net& net) {
    auto failing = net.spawn([] { throw std::out_of_range("of an activity"); });
    bool rethrown = false;
    try {
        failing.join();
    } catch (const std::out_of_range&) {
        rethrown = true;
    }
    expect(rethrown, "join() does not rethrow");
}

/// An activity that waits for ever does not block an exception that destroys its handle.
template <class Runner>
void unwinds_past_activities(Runner& runner) {
    const char* const reason = "past an activity";
    run_witness seen(2);
    expect_rethrown(runner, 2, 0, reason, seen, [&](auto& net) {
        using net_type = std::remove_reference_t<decltype(net)>;
        if constexpr (ConcurrentTransport<net_type>) {
            typename net_type::event waits{net};
            auto stuck = net.spawn([&] {
                waits.set();
                net.receive(net.rank(), {law_context, 0}, deadline::never);
            });
            waits.wait(deadline::never);
            if (net.rank() == 0) throw std::out_of_range(reason);
            stuck.join();
        }
        if (net.rank() == 0) throw std::out_of_range(reason);
    });
}

}  // namespace detail

/// Checks the laws of `ConcurrentTransport`. They hold trivially for a transport that does not model it.
template <class Laws>
void activity_laws(const Laws& all) {
    const auto concurrent = [&](const char* name, int ranks, auto body) {
        all.law(name, ranks, [body](auto& net) {
            if constexpr (ConcurrentTransport<std::remove_reference_t<decltype(net)>>) body(net);
        });
    };
    for (const int ranks : {1, 3})
        concurrent("activities receive on channels of their own", ranks,
                   [](auto& net) { detail::receives_in_activities(net); });
    concurrent("activities post while others receive", 3, [](auto& net) { detail::posts_in_activities(net); });
    concurrent("an event wakes who waits for it", 2, [](auto& net) { detail::signals(net); });
    concurrent("a queue keeps order and ends", 2, [](auto& net) { detail::queues(net); });
    concurrent("activities have identities", 2, [](auto& net) { detail::identifies_activities(net); });
    concurrent("an abort of every context ends waits for events and queues", 3,
               [](auto& net) { detail::ends_meetings(net); });
    concurrent("join rethrows", 1, [](auto& net) { detail::rethrows_on_join(net); });
    all.law_of_run("an exception passes a waiting activity", 2,
                   [](auto& runner) { detail::unwinds_past_activities(runner); });
}

}}}  // namespace rill::RILL_ABI::testing
