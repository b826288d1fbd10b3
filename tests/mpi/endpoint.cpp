#include <rill/core/bytes.hpp>
#include <rill/testing/law.hpp>
#include <rill/transport/mpi.hpp>

#include "../support/allocations.hpp"
#include "processes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>

using namespace rill;
using rill::testing::detail::is_pattern;
using rill::testing::detail::pattern;
using rill::testing::detail::same_bytes;

namespace {

constexpr channel on{.context = 5, .tag = 1};
constexpr std::size_t large = 300'000;

/// Sends a message outside rill: a rank that waits for one here makes no progress in rill.
void tell(rank_t peer) { MPI_Send(nullptr, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD); }
void hear(rank_t peer) { MPI_Recv(nullptr, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

bool are_enough(int ranks) { return processes::count() >= ranks; }

}  // namespace

TEST_CASE("an endpoint reports the thread level that MPI has granted") {
    processes::run(1, [](mpi::endpoint& net) {
        int provided = 0;
        MPI_Query_thread(&provided);
        CHECK((net.thread_level() == mpi::thread_level::multiple) == (provided == MPI_THREAD_MULTIPLE));
        CHECK(net.activities_run_alone() == (provided == MPI_THREAD_MULTIPLE));
        const mpi::environment second(mpi::thread_level::single);
        CHECK_FALSE(second.owns());
        CHECK(second.provided() == net.thread_level());
    });
    CHECK_FALSE(mpi::detail::is_finalised());
}

TEST_CASE("a wait that blocks in the library processes all notes that have arrived") {
    if (!are_enough(2)) return;
    const channel awaited{.context = 5, .tag = 2};
    const auto body = [&](mpi::endpoint& net) {
        for (int others = 1; others <= 130; ++others) {  // all in one wait, before the message that it waits for
            if (net.rank() == 1) {
                for (int i = 0; i < others; ++i) REQUIRE(net.post(0, on, buffer(1)));
                REQUIRE(net.post(0, awaited, buffer(1)));
                tell(0);
                REQUIRE(net.receive(0, awaited, deadline::never));
            } else {
                hear(1);
                REQUIRE(net.receive(1, awaited, deadline::never));
                REQUIRE(net.post(1, awaited, buffer(1)));
                for (int i = 0; i < others; ++i) REQUIRE(net.receive(1, on, deadline::never));
            }
        }
    };
    processes::run(2, body, {.blocks_beyond = seconds(1)});
}

TEST_CASE("messages of every size around the limits arrive whole") {
    if (!are_enough(2)) return;
    constexpr std::size_t eager = 4096;
    const std::size_t sizes[] = {0, 1, 447, 448, 449, 511, 512, 513, eager - 1, eager, eager + 1, 2 * eager, 100'003};
    const auto body = [&](mpi::endpoint& net) {
        for (const std::size_t size : sizes)
            for (const std::size_t head : {std::size_t{0}, std::size_t{96}, size / 2}) {
                if (head > size) continue;
                const buffer whole = pattern(size, size);
                byte_pieces pieces(byte_view(whole).first(head));
                pieces.push(byte_view(whole).subspan(head));
                const rank_t other = 1 - net.rank();
                auto first = net.post(other, on, pieces);
                auto second = net.post(other, on, pieces);
                REQUIRE(net.post(other, on, buffer(whole)));
                buffer into(size);
                const byte_span targets[] = {byte_span(into).first(head), byte_span(into).subspan(head)};
                REQUIRE(net.receive_into(other, on, targets, deadline::never));
                CHECK(into == whole);
                for (int i = 0; i < 2; ++i) {
                    const auto message = net.receive(other, on, deadline::never);
                    CHECK(is_pattern(message->pieces(), size, size));
                }
                CHECK((first.wait(deadline::never) && second.wait(deadline::never)));
            }
    };
    processes::run(2, body, {.eager_bytes = eager});
}

TEST_CASE("receive_into splits a large message as its targets require") {
    if (!are_enough(2)) return;
    processes::run(2, [](mpi::endpoint& net) {
        const buffer whole = pattern(large, 3);
        byte_pieces pieces(byte_view(whole).first(100));
        pieces.push(byte_view(whole).subspan(100, large - 1100));
        pieces.push(byte_view(whole).subspan(large - 1000));
        for (const std::size_t edge : {std::size_t{100}, std::size_t{50}, large / 2, large - 1000}) {
            auto sent = net.post(1 - net.rank(), on, pieces);
            buffer into(large);
            const byte_span targets[] = {byte_span(into).first(edge), {}, byte_span(into).subspan(edge)};
            REQUIRE(net.receive_into(1 - net.rank(), on, targets, deadline::never));
            CHECK(into == whole);
            CHECK(sent.wait(deadline::never));
        }
    });
}

TEST_CASE("a receive_into that times out leaves its targets unchanged and loses nothing") {
    if (!are_enough(2)) return;
    processes::run(2, [](mpi::endpoint& net) {
        const buffer lent = pattern(large, 4), before = pattern(large, 5);
        if (net.rank() == 0) {
            auto sent = net.post(1, on, byte_view(lent));
            tell(1);
            hear(1);
            CHECK(sent.wait(deadline::never));
            return;
        }
        hear(0);
        buffer into = before;
        const byte_span target(into);
        CHECK_FALSE(net.receive_into(0, on, {&target, 1}, net.now() + milliseconds(5)));
        tell(0);
        CHECK(into == before);
        CHECK(net.receive_into(0, on, {&target, 1}, deadline::never));
        CHECK(into == lent);
    });
}

TEST_CASE("an abort ends a receive_into whose sender does not answer, and leaves its targets unchanged") {
    if (!are_enough(3)) return;
    const abort_notice notice{.context = on.context, .culprit = 2, .reason = "rank 2 has had enough"};
    const auto body = [&](mpi::endpoint& net) {
        const buffer lent = pattern(large, 4), before = pattern(large, 5);
        if (net.rank() == 0) {
            auto sent = net.post(1, on, byte_view(lent));
            tell(1);
            hear(1);
            // Rank 1's question is answered now. The wait must not end by that before this rank knows of the abort.
            while (!net.aborted(on.context)) continue;
            CHECK_THROWS_AS(sent.wait(deadline::never), peer_failure);
            sent.settle();
        } else if (net.rank() == 1) {
            hear(0);
            buffer into = before;
            const byte_span target(into);
            tell(2);
            CHECK_THROWS_AS(net.receive_into(0, on, {&target, 1}, deadline::never), peer_failure);
            CHECK(into == before);
            tell(0);
        } else {
            hear(1);
            CHECK(net.abort(notice) == notice);  // rank 0 does not answer, so that this rank notifies all ranks itself
        }
        CHECK(net.aborted(on.context) == notice);
    };
    processes::run(3, body, {.abort_timeout = milliseconds(20)});
}

TEST_CASE("a mailbox between two ranks is bounded, and receiving makes room again") {
    if (!are_enough(2)) return;
    constexpr std::size_t bound = 4096;
    const auto body = [](mpi::endpoint& net) {
        if (net.rank() == 0) {
            for (int i = 0; i < 4; ++i) CHECK(net.post(1, on, pattern(bound / 4, 1)));
            buffer more = pattern(10, 2);
            CHECK_FALSE(net.post(1, on, std::move(more)));
            CHECK_FALSE(net.post(1, on, std::move(more), net.now() + milliseconds(1)));
            CHECK(more == pattern(10, 2));
            tell(1);
            CHECK(net.post(1, on, std::move(more), deadline::never));         // one message is taken
            CHECK(net.post(1, on, pattern(10 * bound, 3), deadline::never));  // all messages are taken
            return;
        }
        hear(0);
        for (int i = 0; i < 6; ++i) CHECK(net.receive(0, on, deadline::never).has_value());
    };
    processes::run(2, body, {.mailbox_bytes = bound});
}

TEST_CASE("ranks that fail at the same time name the same culprit, though rank 0 does not answer") {
    if (!are_enough(3)) return;
    const auto notice = [](rank_t of) {
        return abort_notice{.context = on.context, .culprit = of, .reason = "failed: rank " + std::to_string(of)};
    };
    const auto body = [&](mpi::endpoint& net) {
        if (net.rank() == 0) {
            hear(1);
            hear(2);
            CHECK_THROWS_AS(net.receive(1, on, deadline::never), peer_failure);
        } else {
            const rank_t other = 3 - net.rank();
            REQUIRE(net.post(other, on, buffer(1)));
            REQUIRE(net.receive(other, on, deadline::never));
            CHECK(net.abort(notice(net.rank())) == notice(1));
            tell(0);
        }
        CHECK(net.aborted(on.context) == notice(1));
    };
    processes::run(3, body, {.abort_timeout = seconds(2)});
}

TEST_CASE("rank 0, returning late with a failure of its own, learns what the others have decided") {
    if (!are_enough(2)) return;
    const abort_notice late{.context = on.context, .culprit = 0, .reason = "rank 0 is late"};
    const abort_notice first{.context = on.context, .culprit = 1, .reason = "rank 1 has had enough"};
    const auto body = [&](mpi::endpoint& net) {
        if (net.rank() == 0) hear(1);
        CHECK(net.abort(net.rank() == 0 ? late : first) == first);
        if (net.rank() == 1) tell(0);
    };
    processes::run(2, body, {.abort_timeout = milliseconds(20)});
}

TEST_CASE("receive_latest gets a message, however often a later one is announced during a transfer") {
    if (!are_enough(2)) return;
    const channel turn{.context = 5, .tag = 2};
    processes::run(2, [&](mpi::endpoint& net) {
        const rank_t other = 1 - net.rank();
        const auto take_turns = [&] {
            for (int i = 0; i < 10; ++i) {
                REQUIRE(net.post(other, turn, buffer(1)));
                REQUIRE(net.receive(other, turn, deadline::never));
            }
        };
        int got = 0;
        std::size_t last = 0;
        for (std::size_t round = 1; round <= 40; ++round) {
            if (net.rank() == 1) REQUIRE(net.post(0, on, pattern(large, round)));
            take_turns();  // the announcement has arrived, and the requested message may arrive
            if (net.rank() == 1) {
                tell(0);
                hear(0);
                continue;
            }
            hear(1);  // no message arrives between this check and the next call
            const auto latest = net.receive_latest(std::span(&other, 1), on, deadline::immediate);
            tell(1);
            if (!latest) continue;
            ++got;
            std::size_t is = last + 1;
            while (is <= round && !is_pattern(latest->pieces(), large, is)) ++is;
            CHECK(is <= round);  // later than the last one
            last = is;
        }
        if (net.rank() == 0) CHECK(got >= 3);
    });
}

TEST_CASE("an endpoint ignores the notes of an earlier one, and takes no message of the user's") {
    if (!are_enough(2)) return;
    const MPI_Comm both = processes::first(2);
    if (both == MPI_COMM_NULL) return;
    const rank_t other = 1 - processes::rank();
    for (int round = 0; round < 20; ++round) {
        mpi::endpoint net{both, {.mailbox_bytes = 100, .abort_timeout = milliseconds(1)}};
        CHECK_FALSE(net.aborted(99));
        REQUIRE(net.post(other, on, buffer(static_cast<std::size_t>(round + 1))));
        const int mine = round;
        MPI_Request request;
        MPI_Isend(&mine, 1, MPI_INT, other, 1, both, &request);
        CHECK(net.receive(other, on, deadline::never)->pieces().size_bytes() == static_cast<std::size_t>(round + 1));
        int theirs = -1;
        MPI_Recv(&theirs, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, both, MPI_STATUS_IGNORE);
        CHECK(theirs == round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        REQUIRE(net.post(other, on, buffer(77)));  // nobody receives these two
        REQUIRE(net.post(other, on, buffer(large)) == false);
        if (round % 2 == 0) net.abort({.context = 99, .culprit = 0, .reason = "of this endpoint only"});
    }
}

TEST_CASE("a transfer that is under way when an endpoint ends goes on in memory that the transport owns") {
    if (!are_enough(2)) return;
    const MPI_Comm both = processes::first(2);
    if (both == MPI_COMM_NULL) return;
    for (int round = 0; round < 10; ++round) {
        {
            mpi::endpoint net{both};
            if (net.rank() == 0) {
                CHECK(net.post(1, on, pattern(20 * large, 1)));
                // It is then more likely that the transfer has begun; the test is right in any case.
                net.sleep_until(net.now() + microseconds(200));
            } else {
                net.receive(0, on, net.now() + microseconds(100));
            }
        }
        mpi::run(both, [&](mpi::endpoint& net) {
            const buffer lent = pattern(large, 2);
            auto sent = net.post(1 - net.rank(), on, byte_view(lent));
            const auto message = net.receive(1 - net.rank(), on, deadline::never);
            CHECK(same_bytes(message->pieces(), lent));
            CHECK(sent.wait(deadline::never));
        });
    }
}

TEST_CASE("notes of one endpoint may arrive when the next one uses larger or smaller notes") {
    if (!are_enough(2)) return;
    const MPI_Comm both = processes::first(2);
    if (both == MPI_COMM_NULL) return;
    constexpr std::size_t sizes[] = {300'000, 900'000, 1024, 600'000, 300'000};  // MPI itself keeps this memory
    const rank_t other = 1 - processes::rank();
    for (const std::size_t size : sizes) {
        mpi::endpoint net{both, {.eager_bytes = size}};
        const buffer whole = pattern(size, size);
        net.post(other, on, byte_view(whole)).wait(deadline::never);
        CHECK(same_bytes(net.receive(other, on, deadline::never)->pieces(), whole));
        // Nobody receives these.
        for (int i = 0; i < 3; ++i) net.post(other, on, byte_view(whole)).wait(deadline::never);
    }
}

TEST_CASE("communicators that are created and freed leave nothing behind") {
    if (!are_enough(2)) return;
    const MPI_Comm both = processes::first(2);
    if (both == MPI_COMM_NULL) return;
    const buffer lent = pattern(large, 1);
    const auto use_and_free = [&] {
        MPI_Comm own = MPI_COMM_NULL;
        MPI_Comm_dup(both, &own);
        mpi::run(own, [&](mpi::endpoint& net) {
            auto sent = net.post(1 - net.rank(), on, byte_view(lent));
            REQUIRE(net.receive(1 - net.rank(), on, deadline::never));
            sent.wait(deadline::never);
        });
        MPI_Comm_free(&own);
    };
    const auto in_use = [] {
        const auto known = ::mallinfo2();
        return known.uordblks + known.hblkhd;
    };
    for (int i = 0; i < 100; ++i) use_and_free();
    const std::size_t before = in_use();
    for (int i = 0; i < 1000; ++i) use_and_free();
    CHECK(in_use() < before + 1000 * std::size_t{512});
}

TEST_CASE("a communicator can have any number of endpoints at a time, and reuses them") {
    const MPI_Comm alone = processes::first(1);
    if (alone == MPI_COMM_NULL) return;
    for (int round = 0; round < 2; ++round) {
        const auto before = allocations();
        std::vector<std::unique_ptr<mpi::endpoint>> open;
        for (int i = 0; i < 70; ++i) open.push_back(std::make_unique<mpi::endpoint>(alone));
        if (round == 1) CHECK(allocations() - before < 500);
    }
}

TEST_CASE("two endpoints on one communicator do not interfere") {
    if (!are_enough(2)) return;
    const MPI_Comm both = processes::first(2);
    if (both == MPI_COMM_NULL) return;
    mpi::endpoint first{both}, second{both};
    const rank_t other = 1 - first.rank();
    CHECK((first.post(other, on, buffer(1)) && second.post(other, on, buffer(2))));
    CHECK(second.receive(other, on, deadline::never)->pieces().size_bytes() == 2);
    CHECK(first.receive(other, on, deadline::never)->pieces().size_bytes() == 1);
}

TEST_CASE("ranks with different size options learn which option differs") {
    const std::size_t own = processes::rank() == 0 ? 2048 : 4096;
    if (!are_enough(2)) return;
    const auto says = [](const mpi::options& chosen) -> std::string {
        try {
            const mpi::endpoint net{MPI_COMM_WORLD, chosen};
        } catch (const mismatch& thrown) {
            return thrown.what();
        }
        return "";
    };
    CHECK(says({.eager_bytes = own}).find("eager_bytes") != std::string::npos);
    CHECK(says({.mailbox_bytes = own}).find("mailbox_bytes") != std::string::npos);
    CHECK(says({.chunk_bytes = own}).find("chunk_bytes") != std::string::npos);
    CHECK_THROWS_AS((mpi::endpoint{MPI_COMM_WORLD, {.eager_bytes = 10}}), contract_violation);
    mpi::run([](mpi::endpoint& net) { CHECK(net.size() == processes::count()); });
}

TEST_CASE("an activity goes on while its rank polls") {
    if (!are_enough(2)) return;
    processes::run(2, [](mpi::endpoint& net) {
        const rank_t other = 1 - net.rank();
        const buffer lent = pattern(large, 6);
        mpi::event received{net};
        auto activity = net.spawn([&] {
            const auto message = net.receive(other, on, deadline::never);
            CHECK(same_bytes(message->pieces(), lent));
            received.set();
        });
        auto sent = net.post(other, on, byte_view(lent));
        while (!received.wait(deadline::immediate)) {
        }
        activity.join();
        while (!sent.done()) {
        }
    });
}

TEST_CASE("a steady state allocates nothing") {
    if (!are_enough(2)) return;
    processes::run(2, [](mpi::endpoint& net) {
        const rank_t other = 1 - net.rank();
        const buffer small = pattern(100, 1), middle = pattern(10'000, 2), big = pattern(large, 3);
        const auto exchange = [&] {
            for (const buffer* lent : {&small, &middle, &big}) {
                auto sent = net.post(other, on, byte_view(*lent));
                const auto message = net.receive(other, on, deadline::never);
                if (!same_bytes(message->pieces(), *lent)) FAIL("another message");
                sent.wait(deadline::never);
            }
        };
        for (int i = 0; i < 50; ++i) exchange();
        const auto before = allocations();
        for (int i = 0; i < 50; ++i) exchange();
        CHECK(allocations() - before == 0);
    });
}
