#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include "../support/sanitized.hpp"
#include "../support/scratch.hpp"
#include "impostors.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace rill;
using impostors::agree;
using impostors::say;
using impostors::thrown_at;
using impostors::told_at;

namespace {

template <class Change>
std::vector<std::string> meet(int count, Change&& change) {
    tcp::options chosen{.meeting = ranks::free_point(), .meeting_timeout = seconds(1)};
    std::vector<std::string> said;
    for (const auto& each : ranks::on_threads(count, chosen, [&](tcp::options own) {
             change(own);
             if (own.ranks != 0) tcp::endpoint net(own);
         }))
        said.push_back(ranks::text_of(each));
    return said;
}

}  // namespace

TEST_CASE("who has not come by the deadline is named on every rank that has, with what came instead") {
    const auto said = meet(4, [](tcp::options& own) {
        if (own.rank != 2) return;
        impostors::come_with_another_version(own.meeting);
        own.ranks = 0;
    });
    for (const int rank : {0, 1, 3}) {
        const std::string& text = said[static_cast<std::size_t>(rank)];
        CHECK_MESSAGE(has(text, "rank 2 has not come to 127.0.0.1:"), text);
        CHECK_MESSAGE(has(text, " within 1.000000 s: a process with another version of rill came"), text);
    }
}

TEST_CASE("all that have not come are named") {
    const auto said = meet(5, [](tcp::options& own) {
        if (own.rank == 1 || own.rank == 3) own.ranks = 0;
    });
    for (const std::size_t rank : {0U, 2U, 4U})
        CHECK_MESSAGE(has(said[rank], "ranks 1, 3 have not come to 127.0.0.1:"), said[rank]);
}

#ifndef RILL_TEST_SANITIZED  // sanitizers need descriptors themselves
TEST_CASE("rank 0 names itself while it has no descriptors for those who come, and afterwards who has not come") {
    const scratch_directory place;
    const auto told = [&](const char* file, std::chrono::milliseconds lack) {
        const auto thrown = impostors::thrown_without_descriptors(place / file, seconds(2), lack);
        const std::string said = ranks::text_of(thrown);
        CHECK_MESSAGE(has(said, "rank 1 has not come to file:"), said);
        return std::pair(ranks::culprit_of(thrown), has(said, ": rank 0 cannot accept connections: Too many open"));
    };
    CHECK(told("lasts", std::chrono::seconds(30)) == std::pair(0, true));
    CHECK(told("passes", std::chrono::milliseconds(200)) == std::pair(1, false));
}
#endif

TEST_CASE("where the meeting fails, all that have come are told who is the culprit") {
    const auto culprits = [](int count, auto&& change) {
        std::vector<rank_t> named;
        const tcp::options chosen{.meeting = ranks::free_point(), .meeting_timeout = seconds(1)};
        for (const auto& each : ranks::on_threads(count, chosen, [&](tcp::options own) {
                 change(own);
                 if (own.ranks != 0) tcp::endpoint net(own);
             }))
            if (each) named.push_back(ranks::culprit_of(each));
        return named;
    };
    CHECK(culprits(5, [](tcp::options& own) {
              if (own.rank == 1 || own.rank == 3) own.ranks = 0;
          }) == std::vector<rank_t>{1, 1, 1});
    CHECK(culprits(3, [](tcp::options& own) {
              if (own.rank == 0) own.ranks = 0;
          }) == std::vector<rank_t>{0, 0});
    CHECK(culprits(2, [](tcp::options& own) {
              if (own.rank == 1) own.job = "other";
          }) == std::vector<rank_t>{1, 1});
    CHECK(culprits(2, [](tcp::options& own) {
              if (own.rank == 1) own.window_bytes = 4096;
          }) == std::vector<rank_t>{1, 1});
}

TEST_CASE("without rank 0 the others name it") {
    const auto said = meet(2, [](tcp::options& own) {
        if (own.rank == 0) own.ranks = 0;
    });
    CHECK_MESSAGE(has(said[1], "rank 0 has not come to 127.0.0.1:"), said[1]);
}

TEST_CASE("a rank tells what has answered at the meeting point, where that is not rank 0 of its build") {
    std::string said = told_at([](auto came) { return say(std::move(came), "HTTP/1.1 400 Bad Request\r\n\r\n"); });
    CHECK_MESSAGE(has(said, " within 0.500000 s: rank 1 cannot connect: what answers is no rank of a job"), said);
    said = told_at([](auto came) { return say(std::move(came), "rill\x07"); });
    CHECK_MESSAGE(has(said, "rank 0 has not come to"), said);
    said = told_at([](auto came) { return say(std::move(came), std::string("rill\x07\0", 6)); }, seconds(30));
    CHECK(said == "rill: rank 1 has another version of rill");
}

TEST_CASE("rank 0 that is lost, falls silent or talks nonsense while the ranks meet is named") {
    const auto lost = thrown_at([](auto came) { return agree(std::move(came)), tcp::detail::socket(); }, seconds(30));
    REQUIRE_THROWS_WITH_AS(std::rethrow_exception(lost),
                           "rill: rank 1: the connection to rank 0 is lost while the ranks meet", peer_failure);
    CHECK(ranks::culprit_of(lost) == 0);
    const auto silent = thrown_at([](auto came) { return agree(std::move(came)); });
    REQUIRE_THROWS_WITH_AS(std::rethrow_exception(silent), "rill: rank 1: rank 0 has not answered within 0.500000 s",
                           timeout);
    CHECK(ranks::culprit_of(silent) == 0);
    const std::string said =
        told_at([](auto came) { return say(agree(std::move(came)), std::string("\x02\0\0\0\xff\xff\xff\xff", 8)); },
                seconds(30));
    CHECK_MESSAGE(has(said, "rank 0 sent rank 1 a word that none may tell"), said);
}

TEST_CASE("a rank that ends as the last ones meet is missed by the others, and rank 0 is not blamed") {
    using namespace tcp::detail;
    const std::string point = ranks::free_point();
    const auto thrown = ranks::on_threads(2, {.meeting = point}, [&](const tcp::options& own) {
        if (own.rank == 0)
            return tcp::run([](auto& net) { net.receive(1, {.context = 1}, net.now() + seconds(30)); }, own);
        handshake::identity said = tcp::detail::meet({}).own;
        said.why = handshake::purpose::meeting;
        said.ranks = 2;
        said.rank = 1;
        const roster_entry entry{.rank = 1,
                                 .incarnation = said.incarnation,
                                 .host = "h",
                                 .addresses = {roster_address_of(resolve(ranks::free_point(), 1).front())}};
        const line to = ranks::dial(point, said).take();
        CHECK(to.write(meeting_word::of_entry(mesh_of(own).alike, entry)) > 0);
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(to.on().get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    });
    CHECK(ranks::text_of(thrown[0]) == "rill: rank 1 has gone without a farewell");
}

TEST_CASE("ranks with one key meet, and one with another key or none is told and named") {
    const tcp::key one = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv");
    const tcp::key other = tcp::key::from_text("0123456789abcdefghijklmnopqrstuV");
    auto said = meet(3, [&](tcp::options& own) { own.key = one; });
    for (const std::string& each : said) CHECK(each == "");

    said = meet(3, [&](tcp::options& own) { own.key = own.rank == 1 ? other : one; });
    CHECK_MESSAGE(has(said[0], "rank 1 has not come to 127.0.0.1:"), said[0]);
    CHECK_MESSAGE(has(said[0], "rank 1 has another key than rank 0"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 has another key than rank 0"), said[1]);
    CHECK_MESSAGE(has(said[2], "rank 1 has another key than rank 0"), said[2]);

    said = meet(2, [&](tcp::options& own) { own.key = own.rank == 0 ? one : tcp::key(); });
    CHECK_MESSAGE(has(said[0], "a process came without a key"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 has no key, rank 0 has one"), said[1]);
    said = meet(2, [&](tcp::options& own) { own.key = own.rank == 1 ? one : tcp::key(); });
    CHECK_MESSAGE(has(said[0], "a process came with a key"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 has a key, rank 0 has none"), said[1]);
    said = meet(2, [&](tcp::options& own) {
        own.key = own.rank == 1 ? one : other;
        own.security = tcp::security::open;
    });
    for (const std::string& each : said) CHECK(each == "");
}

TEST_CASE("ranks that encrypt meet, and one that does not is told and named") {
    const tcp::key one = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv");
    const tcp::key other = tcp::key::from_text("0123456789abcdefghijklmnopqrstuV");
    using tcp::security;
    const auto said_by = [&](security first, security second, const tcp::key& second_key) {
        return meet(2, [&](tcp::options& own) {
            own.key = own.rank == 0 ? one : second_key;
            own.security = own.rank == 0 ? first : second;
        });
    };
    for (const std::string& each : said_by(security::encrypted, security::encrypted, one)) CHECK(each == "");

    auto said = said_by(security::encrypted, security::keyed, one);
    CHECK_MESSAGE(has(said[0], "a process came that does not encrypt"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 does not encrypt, rank 0 does"), said[1]);
    said = said_by(security::keyed, security::encrypted, one);
    CHECK_MESSAGE(has(said[0], "a process came that encrypts"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 encrypts, rank 0 does not"), said[1]);
    said = said_by(security::encrypted, security::open, tcp::key());
    CHECK_MESSAGE(has(said[0], "a process came without a key"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 has no key, rank 0 has one"), said[1]);
    said = said_by(security::encrypted, security::encrypted, other);
    CHECK_MESSAGE(has(said[0], "rank 1 has not come"), said[0]);
    CHECK_MESSAGE(has(said[0], "a process with another key came"), said[0]);
    CHECK_MESSAGE(has(said[1], "rank 1 has another key than rank 0"), said[1]);
    CHECK_THROWS_AS(tcp::endpoint({.ranks = 2, .security = security::encrypted}), contract_violation);
}

TEST_CASE("once the ranks have met, only a process that comes later is refused") {
    const std::string point = ranks::free_point();
    std::string said;
    const auto thrown = ranks::on_threads(2, {.meeting = point}, [&](const tcp::options& own) {
        tcp::run(
            [&](auto& net) {
                if (net.rank() != 0) return;
                tcp::options late{.rank = 1, .ranks = 2, .meeting = point, .meeting_timeout = seconds(1)};
                said = ranks::text_of(ranks::thrown_by([&] { tcp::endpoint second(late); }));
            },
            own);
    });
    CHECK_MESSAGE(has(said, "rank 1 cannot connect: the ranks have met already"), said);
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("with a key, a rank of another job ends the meeting only where it has the key") {
    const tcp::key one = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv");
    const tcp::key other = tcp::key::from_text("0123456789abcdefghijklmnopqrstuV");
    for (const bool has_key : {true, false}) {
        const std::string point = ranks::free_point();
        tcp::options stranger{.rank = 1, .ranks = 2, .meeting = point, .job = "other", .key = has_key ? one : other};
        std::string said_of_stranger;
        const auto thrown = ranks::on_threads(2, {.meeting = point, .key = one}, [&](const tcp::options& own) {
            if (own.rank == 1) {
                said_of_stranger = ranks::text_of(ranks::thrown_by([&] { tcp::endpoint net(stranger); }));
                if (has_key) return;
            }
            tcp::endpoint net(own);
        });
        CHECK(ranks::text_of(thrown[0]) == (has_key ? "rill: rank 1 belongs to another job" : ""));
        CHECK_MESSAGE(has(said_of_stranger, has_key ? "rank 1 belongs to another job" : "another key"),
                      said_of_stranger);
    }
}

TEST_CASE("two of one rank, and ranks that differ, are refused on rank 0 and where they come from") {
    auto said = meet(3, [](tcp::options& own) {
        if (own.rank == 2) own.rank = 1;
    });
    CHECK_MESSAGE(has(said[0], "two processes say that they are rank 1"), said[0]);
    CHECK(has(said[1] + said[2], "two processes say that they are rank 1"));
    const std::pair<const char*, void (*)(tcp::options&)> changes[] = {
        {"rank 1 expects 3 ranks or seats, rank 0 2", [](tcp::options& own) { own.ranks = 3; }},
        {"rank 1 belongs to another job", [](tcp::options& own) { own.job = "other"; }},
        {"rank 1 has another value of eager_bytes", [](tcp::options& own) { own.eager_bytes = 2048; }},
        {"rank 1 has another value of chunk_bytes", [](tcp::options& own) { own.chunk_bytes = 2048; }},
        {"rank 1 has another value of mailbox_bytes", [](tcp::options& own) { own.mailbox_bytes = 2048; }},
        {"rank 1 has another value of window_bytes", [](tcp::options& own) { own.window_bytes = 2048; }},
        {"rank 1 has another value of security", [](tcp::options& own) { own.security = tcp::security::open; }},
        {"rank 1 has another value of interfaces: all ranks choose some, or none does",
         [](tcp::options& own) { own.interfaces = "127.0.0.1"; }}};
    for (const auto& [text, change] : changes) {
        said = meet(2, [&, apply = change](tcp::options& own) {
            if (own.rank == 1) apply(own);
        });
        CHECK_MESSAGE(has(said[0], text), said[0]);
        CHECK_MESSAGE(has(said[1], text), said[1]);
    }
}

TEST_CASE("a rank that has come before hears why the meeting ends") {
    const auto thrown = ranks::on_threads(3, {.meeting = ranks::free_point()}, [](tcp::options own) {
        if (own.rank == 2) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            own.job = "other";
        }
        tcp::endpoint net(own);
    });
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "rill: rank 2 belongs to another job");
}

TEST_CASE("options that cannot be are refused before anybody is asked") {
    const auto refused = [](const char* text, void (*change)(tcp::options&)) {
        tcp::options own{.ranks = 2, .meeting = "192.0.2.1:1"};
        change(own);
        CHECK_THROWS_WITH_AS(tcp::endpoint{own}, doctest::Contains(text), contract_violation);
    };
    refused("rank must be", [](tcp::options& own) { own.rank = 2; });
    refused("rank must be", [](tcp::options& own) { own.ranks = 0; });
    refused("at most 65535 ranks", [](tcp::options& own) { own.ranks = 65'536; });
    refused("at most 65535 ranks", [](tcp::options& own) { own.seats = std::numeric_limits<int>::max(); });
    refused("joins a job with seats", [](tcp::options& own) { own.joins = true; });
    refused("eager_bytes must be", [](tcp::options& own) { own.eager_bytes = 16; });
    refused("window_bytes must not be 0", [](tcp::options& own) { own.window_bytes = 0; });
    refused("mailbox_bytes", [](tcp::options& own) { own.mailbox_bytes = 0; });
    refused("meeting_timeout must be above 0", [](tcp::options& own) { own.meeting_timeout = {}; });
    refused("patience at least 1 ms", [](tcp::options& own) { own.patience = microseconds(500); });
    refused("farewell_timeout must not be negative", [](tcp::options& own) { own.farewell_timeout = seconds(-1); });
}

TEST_CASE("a meeting point that is unknown or has no port is named by the rank, before anybody is asked") {
    const auto refused = [](const std::string& points, const std::string& text) {
        CAPTURE(points);
        try {
            tcp::endpoint net({.rank = 1, .ranks = 2, .meeting = points});
            FAIL("nothing was thrown");
        } catch (const tcp::library_error& caught) {
            CHECK_MESSAGE(has(caught.what(), text), caught.what());
            CHECK(caught.culprit() == 1);
        }
    };
    const std::string fine = "127.0.0.1:9, ";
    for (const std::string bad : {"localhost", "localhost:", "localhost:http", "localhost:0", "localhost:65537",
                                  "localhost:-1", "localhost:9 8", "29400"}) {
        refused(bad, "rank 1: the meeting point " + bad + " has no port from 1 to 65535");
        refused(fine + bad, "rank 1: the meeting point " + bad + " has no port from 1 to 65535");
    }
    refused("", "rank 1: the meeting point is empty: give it as HOST:PORT or file:PATH");
    refused(":9", "rank 1: the meeting point :9 is unknown: ");
    refused(":9, :8", "rank 1: the meeting point :9 is unknown: ");
}

TEST_CASE("a taken port is named") {
    const auto points = tcp::detail::resolve("127.0.0.1:0", no_rank);
    const auto taken = tcp::detail::listen_at(points.front(), 1);
    const std::string point = "127.0.0.1:" + std::to_string(tcp::detail::socket_address::local_of(taken).port());
    const std::string said = ranks::text_of(
        ranks::on_threads(2, {.meeting = point, .meeting_timeout = milliseconds(300)}, [](const tcp::options& own) {
            if (own.rank == 0) tcp::endpoint net(own);
        })[0]);
    CHECK_MESSAGE(has(said, "rank 0: cannot listen at " + point + ": Address already in use"), said);
}

TEST_CASE("without a key, an address beyond this host is refused") {
    for (const int rank : {0, 1})
        CHECK_THROWS_WITH_AS(
            tcp::endpoint({.rank = rank, .ranks = 2, .meeting = "192.0.2.1:29400"}),
            doctest::Contains(
                "is not on the loopback interface, and there is no key: tools/launch --make-key makes one"),
            tcp::library_error);
}

TEST_CASE("interfaces that this host has not, that need a key, or that are too many are an error") {
    const auto said = [](const std::string& interfaces) {
        const tcp::options chosen{.meeting = ranks::free_point(), .interfaces = interfaces};
        return ranks::text_of(ranks::on_threads(2, chosen, [](const tcp::options& own) {
            if (own.rank == 0) tcp::endpoint net(own);
        })[0]);
    };
    CHECK(has(said("127.0.0.1, none0"), "rank 0: this host has no network interface none0 with an address"));
    for (const std::string name : {"eth0.77", "localhost.", "1.2.3.256", "[::1]", "::1%none0", ","})
        CHECK(has(said(name), "rank 0: this host has no network interface " + name.substr(name == "," ? 1 : 0)));
    CHECK(has(said("192.0.2.1"), "rank 0: the interface 192.0.2.1 is not the loopback interface, and there is no key"));
    CHECK(has(said("lo,lo,lo,lo,lo,lo,lo,lo,lo"), "rank 0: interfaces names more than 8 network interfaces"));
}

TEST_CASE("each rank is reached at the interfaces that it chooses, rank 0 at the meeting point too") {
    const std::string point = ranks::free_point();
    const tcp::options chosen{.meeting = point, .interfaces = "127.0.0.2, 127.0.0.3 ,::1"};
    const auto thrown = ranks::on_threads(2, chosen, [&](const tcp::options& own) {
        const tcp::detail::mesh met = tcp::detail::meet(own);
        CHECK(met.listeners.size() == 3);
        CHECK(met.listeners.front().size() == (own.rank == 0 ? 2 : 1));
        for (const auto& each : met.roster) {
            REQUIRE(each.addresses.size() == 3);
            const char* const texts[] = {"127.0.0.2:", "127.0.0.3:", "[::1]:"};
            for (std::size_t card = 0; card < 3; ++card) {
                CHECK(each.addresses[card].card == card);
                CHECK(tcp::detail::socket_address_of(each.addresses[card]).text().starts_with(texts[card]));
            }
        }
    });
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("strangers that come again and again keep no ranks from meeting") {
    using namespace tcp::detail;
    const std::string point = ranks::free_point();
    const socket_address at = resolve(point, no_rank).front();
    const std::string text(200, 'x');
    std::atomic<bool> is_over = false;
    std::thread crowd([&] {
        std::deque<tcp::detail::socket> held;
        while (!is_over) {
            tcp::detail::socket made = start_connecting(at);
            if (held.size() % 2 == 0) ::send(made.get(), text.data(), text.size(), MSG_NOSIGNAL);
            held.push_back(std::move(made));
            if (held.size() > 200) held.pop_front();
        }
    });
    tcp::options chosen{.meeting = point, .key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv")};
    const auto thrown = ranks::on_threads(4, chosen, [&](const tcp::options& own) { tcp::run([](auto&) {}, own); });
    is_over = true;
    crowd.join();
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("a stranger that sends without end keeps no ranks from meeting") {
    using namespace tcp::detail;
    const std::string point = ranks::free_point();
    const socket_address at = resolve(point, no_rank).front();
    std::atomic<bool> is_over = false;
    std::thread stranger([&] {
        const std::string text(std::size_t{1} << 16U, 'x');
        while (!is_over) {
            const tcp::detail::socket made = start_connecting(at);
            pollfd one{.fd = made.get(), .events = POLLOUT, .revents = 0};
            while (!is_over && ::poll(&one, 1, 10) >= 0 && (one.revents & (POLLERR | POLLHUP)) == 0)
                if (::send(made.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno != EAGAIN) break;
        }
    });
    tcp::options chosen{.meeting = point, .key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv")};
    const auto thrown = ranks::on_threads(3, chosen, [&](const tcp::options& own) {
        if (own.rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
        tcp::run([](auto&) {}, own);
    });
    is_over = true;
    stranger.join();
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}

TEST_CASE("another job at one of several meeting points keeps no ranks from meeting") {
    const auto key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv");
    for (const auto& other : {key, tcp::key::from_text("vutsrqponmlkjihgfedcba9876543210")}) {
        const std::string theirs = ranks::free_point(), ours = ranks::free_point();
        std::thread stranger([&] {
            const tcp::options waits{
                .ranks = 2, .meeting = theirs, .job = "other", .key = other, .meeting_timeout = seconds(2)};
            ranks::thrown_by([&] { tcp::endpoint net(waits); });
        });
        const auto thrown = ranks::on_threads(2, {.meeting = ours + "," + theirs, .key = key}, [&](tcp::options own) {
            if (own.rank == 0) {
                own.meeting = ours;
                std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until the other job has refused rank 1
            }
            tcp::run([](auto&) {}, own);
        });
        stranger.join();
        for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
    }
}

namespace {

/// Stands before a rank that listens at a meeting point, and carries what is said 100 ms late, each way.
class far_away {
    using socket = tcp::detail::socket;

  public:
    explicit far_away(std::string point)
        : point_(std::move(point)),
          listens_(tcp::detail::listen_at(tcp::detail::resolve("127.0.0.1:0", no_rank).front(), 64)),
          admits_([this] { admit(); }) {}
    ~far_away() {
        is_over_ = true;
        admits_.join();
        for (const socket& each : ends_) ::shutdown(each.get(), SHUT_RDWR);
    }
    std::string point() const { return tcp::detail::socket_address::local_of(listens_).text(); }

  private:
    void admit() {
        const auto at = tcp::detail::resolve(point_, no_rank).front();
        while (!is_over_) {
            pollfd one{.fd = listens_.get(), .events = POLLIN, .revents = 0};
            ::poll(&one, 1, 5);
            socket came(::accept4(listens_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!came) continue;
            ::fcntl(came.get(), F_SETFL, 0);
            socket on(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            if (::connect(on.get(), at.raw(), at.size) != 0) continue;
            carriers_.emplace_back(carry, came.get(), on.get());
            carriers_.emplace_back(carry, on.get(), came.get());
            ends_.push_back(std::move(came));
            ends_.push_back(std::move(on));
        }
    }
    static void carry(int from, int to) {
        char bytes[4096];
        for (ssize_t got; (got = ::recv(from, bytes, sizeof bytes, 0)) > 0;) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            ::send(to, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
        }
        ::shutdown(to, SHUT_WR);
    }

    std::string point_;
    socket listens_;
    std::atomic<bool> is_over_ = false;
    std::deque<socket> ends_{};
    std::deque<std::jthread> carriers_{};  // join before `ends_` are closed
    std::thread admits_;
};

}  // namespace

TEST_CASE("ranks meet though an answer takes longer than the time after which a rank dials anew") {
    for (const auto security : {tcp::security::keyed, tcp::security::encrypted}) {
        const std::string point = ranks::free_point();
        const far_away before(point);
        const tcp::options chosen{.meeting = point,
                                  .security = security,
                                  .key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv"),
                                  .meeting_timeout = seconds(8)};
        for (const auto& each : ranks::on_threads(2, chosen, [&](tcp::options own) {
                 if (own.rank == 1) own.meeting = before.point();
                 tcp::run([](auto&) {}, own);
             }))
            CHECK(ranks::text_of(each) == "");
    }
}

TEST_CASE("a process with another key that answers sooner does not keep a rank from rank 0") {
    const std::string ours = ranks::free_point(), theirs = ranks::free_point();
    std::thread stranger([&] {
        const tcp::options waits{.ranks = 2,
                                 .meeting = theirs,
                                 .key = tcp::key::from_text("vutsrqponmlkjihgfedcba9876543210"),
                                 .meeting_timeout = seconds(3)};
        ranks::thrown_by([&] { tcp::endpoint net(waits); });
    });
    {
        const far_away before(ours);
        const tcp::options chosen{.meeting = ours,
                                  .key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv"),
                                  .meeting_timeout = seconds(8)};
        for (const auto& each : ranks::on_threads(2, chosen, [&](tcp::options own) {
                 if (own.rank == 1) own.meeting = before.point() + "," + theirs;
                 tcp::run([](auto&) {}, own);
             }))
            CHECK(ranks::text_of(each) == "");
    }
    stranger.join();
}

TEST_CASE("of several meeting points, ranks meet at those where rank 0 can listen") {
    const auto taken = tcp::detail::listen_at(tcp::detail::resolve("127.0.0.1:0", no_rank).front(), 1);
    const std::string points = "127.0.0.1:" + std::to_string(tcp::detail::socket_address::local_of(taken).port()) +
                               "," + ranks::free_point() + " , " + ranks::free_point("127.0.0.2");
    for (const auto& each :
         ranks::on_threads(3, {.meeting = points}, [](const tcp::options& own) { tcp::run([](auto&) {}, own); }))
        CHECK(ranks::text_of(each) == "");
}

TEST_CASE("each address of a meeting point's name is tried") {
    const std::string port = ranks::free_point().substr(std::string("127.0.0.1:").size());
    for (const std::string listens : {"127.0.0.1:", "localhost:"})
        for (const auto& each : ranks::on_threads(3, {.meeting = "localhost:" + port}, [&](tcp::options own) {
                 if (own.rank == 0) own.meeting = listens + port;
                 tcp::run([](auto&) {}, own);
             }))
            CHECK(ranks::text_of(each) == "");
}

TEST_CASE("ranks meet by a file, whatever an earlier job has left there") {
    using tcp::detail::meeting_file;
    const std::string path = "/tmp/rill_meeting_" + std::to_string(tcp::detail::random_number());
    const tcp::options chosen{.meeting = "file:" + path, .meeting_timeout = seconds(30)};
    const meeting_file of_another{.job = 1, .incarnation = 5, .addresses = {ranks::free_point()}};
    meeting_file of_this_job = of_another;
    std::atomic<std::uint64_t> job = 0;
    const auto meets = [&] {
        for (const auto& each : ranks::on_threads(3, chosen, [&](const tcp::options& own) {
                 tcp::detail::mesh met = tcp::detail::meet(own);
                 job = met.own.job;
             }))
            CHECK(ranks::text_of(each) == "");
        CHECK(meeting_file::read(path).addresses.empty());
    };
    meets();
    of_another.write(path, 0);
    meets();
    of_this_job.job = job;
    of_this_job.write(path, 0);
    meets();
}

TEST_CASE("a meeting file that is missing, or of another job, is named when the time is over") {
    const std::string path = "/tmp/rill_meeting_" + std::to_string(tcp::detail::random_number());
    const auto told = [&] {
        return ranks::text_of(ranks::thrown_by([&] {
            tcp::endpoint net({.rank = 1, .ranks = 2, .meeting = "file:" + path, .meeting_timeout = milliseconds(150)});
        }));
    };
    std::string said = told();
    CHECK_MESSAGE(has(said, "rank 0 has not come to file:" + path), said);
    CHECK_MESSAGE(has(said, "there is no meeting file"), said);
    tcp::detail::meeting_file{.job = 1, .incarnation = 5, .addresses = {"127.0.0.1:9"}}.write(path, 0);
    said = told();
    CHECK_MESSAGE(has(said, "the meeting file is of another job"), said);
    tcp::detail::meeting_file{.job = 0, .incarnation = 5, .addresses = {"10.255.255.1:9"}}.write(path, 0);
    said = told();
    CHECK_MESSAGE(has(said, "the meeting file names no loopback address, and there is no key"), said);
    CHECK(std::remove(path.c_str()) == 0);
    said = ranks::text_of(ranks::thrown_by([] { tcp::endpoint net({.ranks = 2, .meeting = "file:/nowhere/at/all"}); }));
    CHECK_MESSAGE(has(said, "rank 0: cannot write the meeting file /nowhere/at/all"), said);
}

TEST_CASE("ranks meet by a link-local address, where an interface has one") {
    ifaddrs* all = nullptr;
    REQUIRE(::getifaddrs(&all) == 0);
    std::string host;
    for (const ifaddrs* each = all; each != nullptr && host.empty(); each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET6) continue;
        tcp::detail::socket_address found;
        found.size = sizeof(sockaddr_in6);
        std::memcpy(&found.bytes, each->ifa_addr, found.size);
        const std::string text = found.text();
        if (found.is_link_local()) host = text.substr(0, text.rfind(':'));
    }
    ::freeifaddrs(all);
    if (host.empty()) {
        MESSAGE("skipped: no interface of this host has a link-local address");
        return;
    }
    CHECK(host.find('%') != host.npos);
    const tcp::options chosen{.meeting = ranks::free_point(host), .security = tcp::security::open};
    for (const auto& each : ranks::on_threads(3, chosen, [](const tcp::options& own) {
             tcp::run([](auto& net) { CHECK(net.post((net.rank() + 1) % 3, {.context = 1}, buffer(8))); }, own);
         }))
        CHECK(ranks::text_of(each) == "");
}
