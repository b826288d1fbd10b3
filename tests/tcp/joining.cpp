// Processes that join a job whose ranks have met.
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include "processes.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/types.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace rill;

namespace {

constexpr channel events{.context = 1, .tag = 1}, talk{.context = 2, .tag = 1};

std::string file_point() { return "file:/tmp/rill_joining_" + std::to_string(tcp::detail::random_number()); }
void await(const std::atomic<int>& count, int least) {
    const time_point last = tcp::detail::wall_clock() + seconds(30);
    while (count < least && tcp::detail::wall_clock() < last) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(count >= least);
}

/// Ranks that are threads and meet; `joins(options)` is called when all have. They end when it has returned. Each rank
/// changes its options by `change`, and what it knows of the others by `reroute`.
template <class Change, class Reroute, class Joins>
void beside_members(int count, tcp::options chosen, Change&& change, Reroute&& reroute, Joins&& joins) {
    if (!tcp::detail::is_file(chosen.meeting)) chosen.meeting = ranks::free_point();
    std::atomic<int> begun{0};
    std::atomic<bool> is_over{false};
    std::vector<std::exception_ptr> thrown;
    std::thread members([&] {
        thrown = ranks::on_threads(count, chosen, [&](tcp::options own) {
            change(own);
            tcp::detail::mesh others = tcp::detail::meet(own);
            reroute(others);
            ranks::met net(std::move(others), own);
            const auto body = [&](auto& each) {
                each.monitor(events);
                ++begun;
                // Answers each that joins. One may end without a farewell.
                while (!is_over)
                    for (rank_t peer = count; peer < each.size(); ++peer) try {
                            if (each.receive(peer, talk, each.now() + milliseconds(2)))
                                each.post(peer, talk, buffer(8));
                        } catch (const peer_failure&) {
                            each.sleep_until(each.now() + milliseconds(2));
                        }
            };
            net.run(body);
        });
    });
    await(begun, count);
    chosen.ranks = count;
    chosen.joins = true;
    chosen.rank = count;
    const std::exception_ptr failed = ranks::thrown_by([&] { joins(chosen); });
    is_over = true;
    members.join();
    CHECK(ranks::text_of(failed) == "");
    for (const auto& each : thrown) CHECK(ranks::text_of(each) == "");
}
const auto no_change = [](auto&) {};

/// Joins, talks with all ranks that have met, and leaves.
void join_and_talk(const tcp::options& own) {
    tcp::endpoint net(own);
    net.monitor(events);
    for (rank_t peer = 0; peer < own.ranks; ++peer) {
        CAPTURE(peer);
        net.post(peer, talk, buffer(8));
        CHECK(net.receive(peer, talk, net.now() + seconds(10)).has_value());
    }
}

}  // namespace

TEST_CASE("a process joins over all network cards, whatever number each rank has") {
    const char* const all[] = {"127.0.0.2,127.0.0.3", "127.0.0.2", "127.0.0.2,127.0.0.3,::1"};
    for (const char* const own : all) {
        CAPTURE(own);
        beside_members(
            3, {.seats = 5, .meeting_timeout = seconds(20)},
            [&](tcp::options& of) { of.interfaces = all[static_cast<std::size_t>(of.rank)]; }, no_change,
            [&](tcp::options joiner) {
                joiner.interfaces = own;
                join_and_talk(joiner);
                joiner.rank = 4;
                const tcp::detail::mesh met = tcp::detail::meet(joiner);
                REQUIRE(met.roster.size() == 5);
                for (rank_t peer = 0; peer < 3; ++peer)
                    CHECK(tcp::detail::cards_of(met.at(peer)) ==
                          tcp::detail::parts_of(all[static_cast<std::size_t>(peer)]).size());
            });
    }
}

TEST_CASE("a process joins where a network card of a rank is lost") {
    for (const std::size_t lost : {0U, 1U}) {
        CAPTURE(lost);
        std::vector<tcp::detail::socket> silent;
        beside_members(
            2, {.seats = 3, .interfaces = "127.0.0.2,127.0.0.3", .meeting_timeout = seconds(20)}, no_change,
            [&](tcp::detail::mesh& of) {
                if (of.rank == 1) silent = std::exchange(of.listeners[lost], {});
            },
            join_and_talk);
    }
}

TEST_CASE("a process joins by a file, whatever an earlier job has left there") {
    using tcp::detail::meeting_file;
    const std::string point = file_point(), path = tcp::detail::path_of(point);
    for (int i = 0; i < 2; ++i) {  // the second job finds the file of the first one
        beside_members(3, {.seats = 5, .meeting = point, .meeting_timeout = seconds(20)}, no_change, no_change,
                       [&](tcp::options joiner) {
                           CHECK(meeting_file::read(path).addresses.size() >= 3);
                           join_and_talk(joiner);
                           const meeting_file told = meeting_file::read(path);
                           CHECK(told.addresses.size() >= 4);
                           // Rank 0 does not answer where the file says that it listens.
                           meeting_file others = told;
                           others.addresses.erase(others.addresses.begin());
                           others.addresses.insert(others.addresses.begin(), ranks::free_point());
                           others.write(path, 0);
                           joiner.rank = 4;
                           join_and_talk(joiner);
                       });
    }
    CHECK(std::remove(path.c_str()) == 0);
}

TEST_CASE("processes that join at the same time admit each other") {
    using namespace tcp::detail;
    beside_members(2, {.seats = 4, .meeting_timeout = seconds(20)}, no_change, no_change, [](tcp::options joiner) {
        // The first one has been admitted by rank 0 when the second one comes. Then rank 1 admits the second one first.
        tcp::options other = joiner;
        other.rank = 3;
        mesh known = meet(other);
        known.listeners.clear();  // it has ended
        const auto listener = listen_at(resolve("127.0.0.1:0", no_rank).front(), 16);
        mesh first = mesh_of(joiner);
        first.own.why = handshake::purpose::join;
        const roster_entry entry{.rank = joiner.rank,
                                 .incarnation = first.own.incarnation,
                                 .host = "h",
                                 .addresses = {roster_address_of(socket_address::local_of(listener))}};
        const auto ask = [&](const roster_entry& whom) {
            const line to = ranks::dial(socket_address_of(whom.addresses.front()).text(), first.own).take();
            ++first.own.attempt;
            CHECK(to.write(meeting_word::of_entry(first.alike, entry)) > 0);
            meeting_reader words(first.ranks, joiner.rank, whom.rank, false);
            const time_point last = wall_clock() + seconds(10);
            while (!words.is_whole() && wall_clock() < last) {
                pollfd one{.fd = to.on().get(), .events = POLLIN, .revents = 0};
                wait_for({&one, 1}, last);
                const byte_span room = words.room();
                const ssize_t got = to.read(room);
                if (got > 0) words.arrived(static_cast<std::size_t>(got));
            }
            REQUIRE(words.is_whole());
            return words.roster_of_some();
        };
        ask(known.at(0));
        std::atomic<int> has_joined{0};
        std::string failed;
        std::thread second([&] {
            failed = ranks::text_of(ranks::thrown_by([&] {
                const mesh met = meet(other);
                for (const roster_entry& each : met.roster) has_joined += each.incarnation != 0 ? 1 : 0;
            }));
        });
        // Rank 1 tells of the second one as soon as it has admitted it.
        std::vector<roster_entry> told;
        const auto has_second = [&] { return told.size() == 4 && told[3].incarnation != known.own.incarnation; };
        for (int i = 0; i < 1000 && !has_second(); ++i) {
            told = ask(known.at(1));
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        REQUIRE(has_second());
        CHECK(has_joined == 0);
        CHECK(ask(told.back()).size() == 4);
        second.join();
        CHECK(failed == "");
        CHECK(has_joined == 4);
    });
}

TEST_CASE("a process that joins waits for a silent rank only for the patience") {
    const std::string point = file_point();
    for (const bool by_file : {true, false}) {
        CAPTURE(by_file);
        const auto act = [](const tcp::options& chosen) {
            const std::string said = ranks::text_of(ranks::thrown_by([&] {
                tcp::run(
                    [](auto& net) {
                        net.monitor(events);
                        net.receive(0, talk, net.now() + seconds(20));
                    },
                    chosen);
            }));
            return said.empty() ? 0 : 1;
        };
        tcp::options own{.seats = 4, .meeting_timeout = seconds(20), .failure_timeout = seconds(5)};
        if (by_file) own.meeting = point;
        const std::vector<pid_t> started = processes::start(3, act, own, &own);
        own.joins = true;
        own.rank = 3;
        { const tcp::endpoint none(own); }  // all have met
        own.patience = milliseconds(400);
        const rank_t silent = by_file ? 0 : 1;
        ::kill(started[static_cast<std::size_t>(silent)], SIGSTOP);
        if (by_file) ::kill(started[1], SIGKILL);
        const tcp::detail::mesh met = tcp::detail::meet(own);
        CHECK(met.at(silent).incarnation == 0);
        CHECK(met.at(2).incarnation != 0);
        for (const pid_t child : started) ::kill(child, SIGKILL);
        for (const pid_t child : started) CHECK(processes::end_of(child) == 128 + SIGKILL);
    }
    CHECK(std::remove(tcp::detail::path_of(point).c_str()) == 0);
}

TEST_CASE("of processes that join at the same time on one seat, at most one does") {
    const auto act = [](const tcp::options& chosen) {
        const auto joins = [&] {
            tcp::endpoint net(chosen);
            net.monitor(events);
            for (rank_t peer = 0; peer < chosen.ranks; ++peer) {
                net.post(peer, talk, buffer(8));
                if (!net.receive(peer, talk, net.now() + seconds(10))) throw std::runtime_error("no answer");
            }
            net.sleep_until(net.now() + milliseconds(1800));  // longer than the other one waits for the seat
        };
        return ranks::thrown_by(joins) == nullptr ? 0 : 1;
    };
    const std::string point = file_point();
    const tcp::options members{.seats = 4, .meeting = point, .meeting_timeout = seconds(20)};
    tcp::options joiner = members;
    joiner.rank = joiner.ranks = 3;
    joiner.joins = true;
    joiner.patience = milliseconds(400);
    for (int i = 0; i < 4; ++i) {
        // They begin before this process has threads: a lock that a thread holds would stay locked in them.
        int gate[2];
        REQUIRE(::pipe(gate) == 0);
        const auto act_later = [&](const tcp::options& chosen) {
            char go = 0;
            return ::read(gate[0], &go, 1) == 1 ? act(chosen) : 2;
        };
        pid_t both[2];
        for (pid_t& each : both) each = processes::start_one(act_later, joiner);
        beside_members(3, members, no_change, no_change, [&](const tcp::options& third) {
            CHECK(::write(gate[1], "go", 2) == 2);
            int joined = 0;
            for (const pid_t each : both) {
                const int status = processes::end_of(each);
                CHECK(status <= 1);
                joined += status == 0 ? 1 : 0;
            }
            CHECK(joined <= 1);
            join_and_talk(third);  // both have ended: the seat is free again
        });
        for (const int end : gate) ::close(end);
    }
    CHECK(std::remove(tcp::detail::path_of(point).c_str()) == 0);
}
