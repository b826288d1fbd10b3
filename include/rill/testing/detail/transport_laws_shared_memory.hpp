#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/detail/transport_laws_abort.hpp>
#include <rill/testing/detail/transport_laws_control.hpp>
#include <rill/testing/law.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline call_signature shared_call(std::uint64_t number) {
    return {.number = number, .kind = operation::all_reduce, .dimension = 8};
}

/// Bytes that one rank exposes.
struct exposed_bytes {
    std::vector<std::byte> input, output;

    exposed_bytes(std::size_t size, rank_t rank) : input(size, std::byte(rank + 1)), output(size) {}
    exposure in(const call_signature& call) { return {call, {}, input.data(), output.data()}; }
};

template <class Commons, class Visit>
void see_all(Commons& shared, int size, std::uint64_t number, Visit&& visit) {
    for (rank_t peer = 0; peer < size; ++peer) {
        const exposure* seen = shared.exposed(peer, shared_call(number), deadline::never);
        expect(seen != nullptr, "a wait without deadline for what a rank exposes comes back empty");
        expect(seen->call == shared_call(number), "what a rank exposes names another call");
        visit(peer, *seen);
    }
}

/// Every rank reads its own byte of all inputs and writes it to all outputs, in more operations than there are slots.
template <class Net>
void reaches_all_memory(Net& net) {
    auto shared = net.share(law_context);
    const auto ranks = static_cast<std::size_t>(net.size()), self = static_cast<std::size_t>(net.rank());
    for (std::uint64_t number = 1; number <= 2 * Net::window::places + 1; ++number) {
        exposed_bytes own(ranks, net.rank());
        for (rank_t peer = 0; peer < net.size(); ++peer)
            expect(shared.has_room(peer, number, deadline::never), "a wait without deadline for room gives up");
        shared.expose(own.in(shared_call(number)));
        unsigned sum = 0;
        see_all(shared, net.size(), number,
                [&](rank_t, const exposure& seen) { sum += std::to_integer<unsigned>(seen.input[self]); });
        expect(shared.enter(number), "a rank cannot enter although none has withdrawn");
        see_all(shared, net.size(), number,
                [&](rank_t, const exposure& seen) { seen.output[self] = static_cast<std::byte>(sum); });
        shared.leave(number);
        for (rank_t peer = 0; peer < net.size(); ++peer)
            expect(shared.has_left(peer, number, deadline::never), "a wait without deadline for a rank gives up");
        for (const std::byte each : own.output)
            expect_equal(std::to_integer<std::size_t>(each), ranks * (ranks + 1) / 2, "others wrote something else");
    }
}

/// Copies in slots stay until all ranks have read them, even if their own rank goes on and ends.
template <class Net>
void keeps_slots(Net& net) {
    auto shared = net.share(law_context + 1);
    const auto read = [&](std::uint64_t number) {
        see_all(shared, net.size(), number, [&](rank_t peer, const exposure& seen) {
            std::uint64_t value = 0;
            std::memcpy(&value, seen.input, sizeof value);
            expect_equal(value, number * 100 + static_cast<std::uint64_t>(peer), "a slot holds something else");
        });
        shared.pass(number);
    };
    for (std::uint64_t number = 1; number <= 3 * Net::window::places; ++number) {
        const std::uint64_t value = number * 100 + static_cast<std::uint64_t>(net.rank());
        for (rank_t peer = 0; peer < net.size(); ++peer) shared.has_room(peer, number, deadline::never);
        const byte_span slot = shared.slot(number, sizeof value);
        expect(slot.size() == sizeof value, "a slot has another size");
        std::memcpy(slot.data(), &value, sizeof value);
        shared.expose({shared_call(number), {}, slot.data(), nullptr});
        shared.prepare(number + 1 + number % 3 / 2);  // mostly the next number, sometimes a later one
        read(number);
    }
}

/// Exposing announces the call. The announcement of another call ends the wait for exposed memory.
template <class Net>
void announces_what_is_exposed(Net& net) {
    constexpr std::uint64_t context = law_context + 2;
    auto shared = net.share(context);
    exposed_bytes own(1, net.rank());
    if (net.rank() == 0) {
        shared.expose(own.in(shared_call(1)));
        expect(shared.exposed(1, shared_call(1), deadline::never) == nullptr,
               "a wait for what is exposed ignores that the rank calls something else");
        expect(net.inquire(1, context, 1, deadline::never) == numbered_call(1, 1), "inquire tells another call");
        expect(shared.exposed(1, shared_call(2), deadline::immediate) == nullptr, "something is exposed too early");
    } else {
        expect(net.inquire(0, context, 1, deadline::never) == shared_call(1),
               "a call that was exposed counts as not announced");
        net.announce(context, numbered_call(1, 1));
    }
    meet(net, 1);
}

/// No rank enters after a rank has withdrawn its memory; withdrawing waits for the ranks that have entered.
template <class Net>
void withdraws(Net& net) {
    constexpr std::uint64_t context = law_context + 3;
    auto shared = net.share(context);
    const channel on{.context = law_context + 4, .tag = 1};
    exposed_bytes own(1, net.rank());
    for (std::uint64_t number = 1; number <= 2; ++number) {
        shared.expose(own.in(shared_call(number)));
        see_all(shared, net.size(), number, [](rank_t, const exposure&) {});
        const bool enters_first = number == 1;
        if (net.rank() == 0) {
            if (enters_first) receive_number(net, 1, on);
            shared.withdraw(number);
            own.output[0] = std::byte{9};  // no other rank writes it now
            if (!enters_first) post_number(net, 1, on, 0);
        } else {
            if (!enters_first) receive_number(net, 0, on);
            expect(shared.enter(number) == enters_first, enters_first ? "a rank cannot enter" : "a rank enters");
            if (enters_first) {
                post_number(net, 0, on, 0);
                shared.exposed(0, shared_call(number), deadline::never)->output[0] = std::byte{1};
                shared.abandon(number);
            }
        }
        meet(net, static_cast<std::uint32_t>(number));
        if (net.rank() == 0) expect(own.output[0] == std::byte{9}, "a rank is inside after a withdrawal");
    }
}

template <class Net>
void hands_out_work_once(Net& net) {
    auto shared = net.share(law_context + 5);
    exposed_bytes own(100, net.rank());
    shared.expose(own.in(shared_call(1)));
    see_all(shared, net.size(), 1, [](rank_t, const exposure&) {});
    expect(shared.enter(1), "a rank cannot enter although none has withdrawn");
    for (rank_t peer = 0; peer < net.size(); ++peer) {
        const exposure* theirs = shared.exposed(peer, shared_call(1), deadline::never);
        for (std::uint64_t i = shared.claim(peer, 1); i < 100; i = shared.claim(peer, 1))
            theirs->output[i] = std::byte(std::to_integer<int>(theirs->output[i]) + 1);
    }
    shared.leave(1);
    for (rank_t peer = 0; peer < net.size(); ++peer) shared.has_left(peer, 1, deadline::never);
    for (const std::byte each : own.output) expect(each == std::byte{1}, "a claim is given never, or twice");
}

template <class Net>
void counts_accesses(Net& net) {
    auto shared = net.share(law_context + 6);
    const traffic before = net.counted();
    shared.count(3, 100);
    expect(net.counted() - before == traffic{3, 100, 3, 100}, "accesses are counted otherwise");
}

template <class Net>
void ends_waits_for_memory(Net& net) {
    constexpr std::uint64_t context = law_context + 7;
    auto shared = net.share(context);
    ends_waits(net, context, "exposed() survives an abort",
               [&] { shared.exposed(net.rank(), shared_call(1), deadline::never); });
}

}  // namespace detail

/// Checks the laws of memory that ranks expose to each other.
template <class Laws>
void shared_memory_laws(const Laws& all) {
    const auto where_shared = [](auto check) {
        return [check](auto& net) {
            if constexpr (SharedMemoryTransport<std::remove_reference_t<decltype(net)>>) check(net);
        };
    };
    for (const int ranks : {1, 2, 5})
        all.law("exposed memory is read and written by all", ranks,
                where_shared([](auto& net) { detail::reaches_all_memory(net); }));
    for (const int ranks : {1, 2, 5})
        all.law("a slot stays until all have passed", ranks, where_shared([](auto& net) { detail::keeps_slots(net); }));
    all.law("to expose is to announce", 2, where_shared([](auto& net) { detail::announces_what_is_exposed(net); }));
    all.law("nobody is inside after a withdrawal", 2, where_shared([](auto& net) { detail::withdraws(net); }));
    all.law("work is handed out once", 3, where_shared([](auto& net) { detail::hands_out_work_once(net); }));
    all.law("accesses are counted", 1, where_shared([](auto& net) { detail::counts_accesses(net); }));
    all.law("a wait for exposed memory ends with its context", 3,
            where_shared([](auto& net) { detail::ends_waits_for_memory(net); }));
}

}}}  // namespace rill::RILL_ABI::testing
