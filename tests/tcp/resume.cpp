#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/tcp.hpp>

#include "../mpi/evidence.hpp"
#include "proxy.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace rill;

namespace {

/// Runs `body(net)` on ranks of which those for which `is_behind(rank, peer)` holds reach each other only through the
/// proxy; returns what they threw.
template <class Body, class Behind>
std::vector<std::exception_ptr> thrown_behind(ranks::cutting_proxy& proxy, int count, Body&& body, tcp::options chosen,
                                              Behind&& is_behind) {
    using namespace tcp::detail;
    chosen.meeting = ranks::free_point();
    std::vector<std::vector<roster_address>> before(static_cast<std::size_t>(count));
    std::barrier<> all(count);
    return ranks::on_threads(count, chosen, [&](const tcp::options& own) {
        mesh met = meet(own);
        for (const auto& card : met.listeners) {
            auto& here = before[static_cast<std::size_t>(own.rank)];
            here.push_back(roster_address_of(proxy.stand_before(socket_address::local_of(card.front()))));
            here.back().card = static_cast<std::uint8_t>(here.size() - 1);
        }
        all.arrive_and_wait();
        for (rank_t peer = 0; peer < count && count > 1; ++peer)
            if (is_behind(own.rank, peer)) met.at(peer).addresses = before[static_cast<std::size_t>(peer)];
        ranks::met(std::move(met), own).run(body);
    });
}
/// The same where all ranks are behind it; throws what one of them threw.
template <class Body>
void run_behind(ranks::cutting_proxy& proxy, int count, Body&& body, const tcp::options& chosen) {
    for (const auto& each : thrown_behind(proxy, count, body, chosen, [](rank_t, rank_t) { return true; }))
        if (each) std::rethrow_exception(each);
}

}  // namespace

TEST_CASE("connections that are cut anywhere lose and repeat nothing: collectives have the bits of in_process") {
    using digests = std::vector<std::vector<std::uint64_t>>;
    const auto results = [](int count, auto&& run) {
        digests each(static_cast<std::size_t>(count));
        run([&](auto& net) {
            group workers{net, topology::ring{}};
            each[static_cast<std::size_t>(net.rank())] = evidence::of(workers).digests();
        });
        return each;
    };
    struct job {
        int count;
        bool encrypts;
        const char* interfaces;
        std::future<std::pair<digests, int>> results_and_cuts{};
    };
    std::vector<job> jobs;  // all at once: most of the time they wait to connect again
    for (const int count : {2, 3, 4})
        for (const auto& [encrypts, interfaces] :
             {std::pair{false, ""}, {true, ""}, {false, "127.0.0.1,127.0.0.2"}, {true, "127.0.0.1,127.0.0.2,::1"}})
            if (!encrypts || count == 3) jobs.push_back({count, encrypts, interfaces});
    for (job& each : jobs)
        each.results_and_cuts = std::async(std::launch::async, [&results, &each] {
            ranks::cutting_proxy proxy(30'000, static_cast<std::uint64_t>(each.count));
            tcp::options chosen{.interfaces = each.interfaces, .eager_bytes = 4096};
            if (each.encrypts) ranks::encrypt(chosen);
            digests seen = results(each.count, [&](auto body) { run_behind(proxy, each.count, body, chosen); });
            return std::pair(std::move(seen), proxy.cuts());
        });
    int cuts = 0;
    for (job& each : jobs) {
        CAPTURE(each.count);
        CAPTURE(each.encrypts);
        CAPTURE(each.interfaces);
        const auto expected = results(each.count, [&](auto body) { in_process::run(each.count, body); });
        const auto [seen, cut] = each.results_and_cuts.get();
        CHECK(seen == expected);
        cuts += cut;
    }
    CHECK(cuts > 100);
}

TEST_CASE("laws over connections that are cut, and over two lines that are cut") {
    const auto check = [](const tcp::options& chosen, std::size_t copied_bytes, std::uint64_t seed) {
        ranks::cutting_proxy proxy(100'000, seed);
        testing::transport_limits limits{.large_bytes = 100'000, .largest_bytes = 1'000'000};
        limits.mailbox_bytes = chosen.mailbox_bytes;
        limits.copied_bytes = copied_bytes;
        limits.lends = false;
        limits.most_ranks = 3;
        testing::for_each_law(
            [&](int count, auto&& body) { run_behind(proxy, count, body, chosen); }, limits,
            [&](const char* name, const testing::law_outcome& outcome) {
                CHECK_MESSAGE(outcome.held, std::string(name) << " (" << chosen.interfaces << "): " << outcome.what);
            });
        CHECK(proxy.cuts() > 50);
    };
    // At once: most of the time they wait to connect again.
    auto one_line =
        std::async(std::launch::async, check, tcp::options{.mailbox_bytes = 150'000, .eager_bytes = 1024}, 1024, 1);
    check({.interfaces = "127.0.0.1,127.0.0.2", .mailbox_bytes = 150'000, .eager_bytes = 1024, .sends_unasked = true},
          150'000, 2);
    one_line.get();
}

TEST_CASE("where a message is not acknowledged, another connection is made long before the patience ends") {
    ranks::cutting_proxy proxy(std::size_t{1} << 30, 1);
    const auto talks = [&](auto& net) {
        const rank_t peer = 1 - net.rank();
        for (int i = 0; i < 3; ++i) {
            CHECK(net.post(peer, {.context = 1}, buffer(8)));
            // Half of the patience would be 30 s.
            CHECK(net.receive(peer, {.context = 1}, net.now() + seconds(20)).has_value());
            if (net.rank() == 0) proxy.fall_silent();
        }
    };
    run_behind(proxy, 2, talks, {.patience = seconds(60)});
}

TEST_CASE("each side of a partition names a rank of the other side") {
    constexpr auto side = [](rank_t rank) { return rank / 2; };
    ranks::cutting_proxy proxy(std::size_t{1} << 30, 1);
    const auto sums = [&](auto& net) {
        group workers{net, topology::ring{}};
        std::vector<float> values(1000, 1.0F), sum(values.size());
        for (int step = 0;; ++step) {
            if (net.rank() == 0 && step == 20) proxy.part();
            all_reduce(workers, values, sum);
        }
    };
    const auto thrown = thrown_behind(proxy, 4, sums, {.patience = seconds(3), .failure_timeout = milliseconds(200)},
                                      [&](rank_t rank, rank_t peer) { return side(rank) != side(peer); });
    for (rank_t rank = 0; rank < 4; ++rank) {
        CAPTURE(rank);
        try {
            REQUIRE(thrown[static_cast<std::size_t>(rank)] != nullptr);
            std::rethrow_exception(thrown[static_cast<std::size_t>(rank)]);
        } catch (const peer_failure& caught) {
            CHECK(side(caught.culprit()) == 1 - side(rank));
        }
    }
}

TEST_CASE("a rank that rank 0 cannot reach hears of a failure by another rank") {
    ranks::cutting_proxy proxy(std::size_t{1} << 30, 1);
    std::barrier<> all(4);
    const auto waits = [&](auto& net) {
        if (net.rank() == 0) proxy.part();
        all.arrive_and_wait();
        if (net.rank() == 3) throw std::runtime_error("no more rows");
        net.receive(net.rank() == 1 ? 0 : 1, {.context = 1}, net.now() + seconds(30));
    };
    const auto thrown = thrown_behind(
        proxy, 4, waits,
        {.patience = seconds(60), .failure_timeout = milliseconds(200), .farewell_timeout = milliseconds(200)},
        [](rank_t rank, rank_t peer) { return rank + peer == 2 && rank != peer; });
    for (const std::size_t rank : {0U, 1U, 2U})
        CHECK(ranks::text_of(thrown[rank]) == "rill: rank 3 failed: no more rows");
}

TEST_CASE("ranks that fail while they cannot reach each other end as soon as their options say") {
    const auto check = [](duration tcp::options::*longer) {
        tcp::options chosen{.patience = seconds(60),
                            .abort_timeout = milliseconds(50),
                            .failure_timeout = milliseconds(50),
                            .farewell_timeout = milliseconds(50)};
        if (longer != nullptr) chosen.*longer = seconds(2);
        ranks::cutting_proxy proxy(std::size_t{1} << 30, 1);
        std::barrier<> both(2);
        const auto fails = [&](auto& net) {
            const rank_t peer = 1 - net.rank();
            CHECK(net.post(peer, {.context = 1}, buffer(8)));
            CHECK(net.receive(peer, {.context = 1}, net.now() + seconds(30)).has_value());
            both.arrive_and_wait();
            if (net.rank() == 0) proxy.part();
            both.arrive_and_wait();
            if (net.rank() == 1) throw std::runtime_error("rank 1 fails");
            CHECK_FALSE(net.receive(peer, {.context = 1}, net.now() + milliseconds(50)).has_value());
            throw std::runtime_error("rank 0 fails");
        };
        const time_point begin = tcp::detail::wall_clock();
        const auto thrown = thrown_behind(proxy, 2, fails, chosen, [](rank_t, rank_t) { return true; });
        const duration took = tcp::detail::wall_clock() - begin;
        CHECK(ranks::text_of(thrown[0]) == "rank 0 fails");
        CHECK(ranks::text_of(thrown[1]) == "rank 1 fails");
        return took;
    };
    const std::pair<const char*, duration tcp::options::*> waits[] = {
        {"none", nullptr},
        {"abort_timeout", &tcp::options::abort_timeout},
        {"failure_timeout", &tcp::options::failure_timeout},
        {"farewell_timeout", &tcp::options::farewell_timeout}};
    std::vector<std::future<duration>> took;
    for (const auto& [name, longer] : waits) took.push_back(std::async(std::launch::async, check, longer));
    for (std::size_t i = 0; i < took.size(); ++i) {
        CAPTURE(waits[i].first);
        const duration each = took[i].get();
        CHECK(each < seconds(20));
        if (waits[i].second != nullptr) CHECK(each >= seconds(2));
    }
}

TEST_CASE("a dial that was given up and proves itself late makes no rank gone") {
    using namespace tcp::detail;
    const tcp::options chosen{.meeting = ranks::free_point()};
    const auto thrown = ranks::on_threads(2, chosen, [&](const tcp::options& own) {
        mesh met = meet(own);
        const roster_entry& first = met.roster.front();
        std::optional<pending_connection> late;
        if (own.rank == 1)
            late.emplace(pending_connection::dialled(start_connecting(socket_address_of(first.addresses.front())),
                                                     met.own, {0, first.incarnation}, {}, wall_clock()));
        const auto go_on_until = [&](auto&& done) {
            const time_point last = wall_clock() + seconds(30);
            while (late->proceed() && !done() && wall_clock() < last) {
                pollfd one{.fd = late->on().get(), .events = late->wanted(), .revents = 0};
                wait_for({&one, 1}, last);
            }
            CHECK(done());
        };
        ranks::met net(std::move(met), own);
        const auto talks = [&](auto& each) {
            for (int i = 0; i < 3; ++i) {
                CHECK(each.post(1 - each.rank(), {.context = 1}, buffer(8)));
                CHECK(each.receive(1 - each.rank(), {.context = 1}, each.now() + seconds(30)).has_value());
                if (each.rank() == 0) continue;
                if (i == 0) go_on_until([&] { return late->now() == handshake::state::asks; });
                if (i != 1) continue;
                late->prove(0);
                go_on_until([&] { return late->is_settled(); });
                CHECK(late->said().why() == handshake::refusal::stale);
            }
        };
        net.run(talks);
    });
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("ranks that have nothing to say to each other do not connect") {
    using namespace tcp::detail;
    const auto closed = socket_address::local_of(listen_at(resolve("127.0.0.1:0", no_rank).front(), 1));
    tcp::options chosen{.meeting = ranks::free_point()};
    // Ranks 1 and 4 are no neighbours in the ring of eight, nor do they tell each other when they have ended.
    const auto thrown = ranks::on_threads(8, chosen, [&](const tcp::options& own) {
        mesh met = meet(own);
        if (own.rank == 1 || own.rank == 4)
            met.roster[static_cast<std::size_t>(5 - own.rank)].addresses = {roster_address_of(closed)};
        ranks::met net(std::move(met), own);
        const auto passes_on = [](auto& each) {
            CHECK(each.post((each.rank() + 1) % 8, {.context = 1}, buffer(8)));
            CHECK(each.receive((each.rank() + 7) % 8, {.context = 1}, each.now() + seconds(30)).has_value());
        };
        net.run(passes_on);
    });
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("a rank that leaves before the one that watches it has reached it is not missed") {
    tcp::options chosen{.meeting = ranks::free_point()};
    std::promise<void> left;
    const std::shared_future<void> has_left = left.get_future().share();
    const auto thrown = ranks::on_threads(3, chosen, [&](const tcp::options& own) {
        if (own.rank == 1) {
            {
                tcp::endpoint net(own);
            }
            return left.set_value();
        }
        tcp::endpoint net(own);
        const rank_t peer = 2 - own.rank;
        has_left.wait();
        for (int i = 0; i < 20; ++i) {
            CHECK(net.post(peer, {.context = 1}, buffer(8)));
            CHECK(net.receive(peer, {.context = 1}, net.now() + seconds(30)).has_value());
            CHECK_FALSE(net.receive(peer, {.context = 2}, net.now() + milliseconds(20)).has_value());
        }
    });
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("a wait for a rank that has left takes what that rank has said, and then throws, and others go on") {
    tcp::options chosen{.meeting = ranks::free_point()};
    const auto thrown = ranks::on_threads(3, chosen, [&](const tcp::options& own) {
        tcp::endpoint net(own);
        const channel on{.context = 1};
        if (own.rank == 1) {
            CHECK(net.post(0, on, buffer(8)));
            return;
        }
        const rank_t peer = 2 - own.rank;
        if (own.rank == 0) {
            CHECK(net.receive(1, on, deadline::never).has_value());
            CHECK_THROWS_WITH_AS(net.receive(1, on, deadline::never),
                                 doctest::Contains("rank 1 has left, and rank 0 waits for it"), peer_failure);
            for (const deadline until : {deadline::immediate, deadline(net.now() + milliseconds(5))})
                CHECK_FALSE(net.receive(1, on, until).has_value());
        }
        CHECK(net.post(peer, on, buffer(8)));
        CHECK(net.receive(peer, on, net.now() + seconds(30)).has_value());
    });
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("a rank that says what none may say is named") {
    using namespace tcp::detail;
    const std::pair<frame_head, const char*> wrong[] = {
        {{.size = 1, .kind = frame_kind::part, .value = std::uint64_t{1} << 40}, "a part that is too long"},
        {{.size = 8, .kind = frame_kind::part, .tag = 3, .value = 8}, "a part that was not asked for"},
        {{.size = ~std::uint32_t{0}, .kind = frame_kind::note}, "a note that is too long"}};
    for (const auto& [head, fault] : wrong) {
        std::promise<void> over;
        const auto thrown = ranks::on_threads(2, {.meeting = ranks::free_point()}, [&](const tcp::options& own) {
            if (own.rank == 0) {
                const auto told = ranks::thrown_by([&] {
                    tcp::endpoint net(own);
                    net.receive(1, {.context = 1}, net.now() + seconds(30));
                });
                over.set_value();
                if (told) std::rethrow_exception(told);
                return;
            }
            mesh met = meet(own);
            met.own.attempt = 1;
            const line to = ranks::dial(socket_address_of(met.roster[0].addresses.front()).text(), met.own).take();
            std::byte bytes[frame_head::size_bytes];
            head.write(bytes);
            CHECK(to.write(byte_view(bytes)) == static_cast<ssize_t>(sizeof bytes));
            over.get_future().wait();
        });
        const std::string said = ranks::text_of(thrown[0]);
        CHECK_MESSAGE(said.find(std::string("rank 1 sent rank 0 ") + fault) != said.npos, said);
    }
}
