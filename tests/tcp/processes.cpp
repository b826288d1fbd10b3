#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/tcp.hpp>

#include "ranks.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

using namespace rill;

namespace {

/// Starts a process for each rank; it exits with what `act(options)` returns.
template <class Act>
std::vector<pid_t> start(int count, Act&& act) {
    tcp::options chosen{.ranks = count, .meeting = ranks::free_point(), .failure_timeout = seconds(5)};
    std::vector<pid_t> started;
    for (chosen.rank = 0; chosen.rank < count; ++chosen.rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(60);
            ::_exit(act(chosen));
        }
        started.push_back(child);
    }
    return started;
}
int end_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("processes sum") {
    const auto sums = [](const tcp::options& chosen) {
        bool right = false;
        tcp::run(
            [&](auto& net) {
                group workers{net, topology::ring{}};
                const std::vector<float> one(100'000, 1.0F);
                std::vector<float> sum(one.size());
                all_reduce(workers, one, sum);
                right = sum == std::vector<float>(one.size(), 4.0F);
            },
            chosen);
        return right ? 0 : 1;
    };
    for (const pid_t child : start(4, sums)) CHECK(end_of(child) == 0);
}

TEST_CASE("all survivors name a process that was killed") {
    for (const int victim : {0, 1, 3}) {
        CAPTURE(victim);
        const auto dies = [=](const tcp::options& chosen) {
            try {
                tcp::run(
                    [&](auto& net) {
                        group workers{net, topology::ring{}};
                        std::vector<float> sum(100'000, 1.0F);
                        for (int step = 0;; ++step) {
                            if (net.rank() == victim && step == 20) ::raise(SIGKILL);
                            all_reduce(workers, sum, sum);
                        }
                    },
                    chosen);
            } catch (const error& caught) {
                const std::string text = caught.what();
                return caught.culprit() == victim && text.find("has gone without a farewell") != text.npos ? 7 : 1;
            }
            return 2;
        };
        const std::vector<pid_t> started = start(4, dies);
        for (std::size_t rank = 0; rank < started.size(); ++rank)
            CHECK(end_of(started[rank]) == (static_cast<int>(rank) == victim ? 128 + SIGKILL : 7));
    }
}

namespace {

/// Starts a process that meets as the options say. It exits with 0, or with a number for what it was told.
pid_t start_to_meet(const tcp::options& chosen) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(60);
    try {
        tcp::run([](auto&) {}, chosen);
    } catch (const error& caught) {
        const std::string said = caught.what();
        if (said.find("rank 2 has another key than rank 0") != said.npos) ::_exit(3);
        if (said.find("rank 2 belongs to another job") != said.npos) ::_exit(4);
        if (said.find("two processes say that they are rank 2") != said.npos) ::_exit(5);
        ::_exit(1);
    }
    ::_exit(0);
}

}  // namespace

TEST_CASE(
    "a process with a wrong key keeps none from meeting; a rank of another job or a second one ends the meeting") {
    tcp::options first{.ranks = 3, .meeting = ranks::free_point(), .failure_timeout = seconds(5)};
    first.key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv");
    tcp::options second = first, third = first;
    second.rank = 1;
    third.rank = 2;
    SUBCASE("a wrong key") {
        tcp::options wrong = third;
        wrong.key = tcp::key::from_text("0123456789abcdefghijklmnopqrstuV");
        const pid_t at_zero = start_to_meet(first);
        CHECK(end_of(start_to_meet(wrong)) == 3);
        const pid_t others[] = {start_to_meet(second), start_to_meet(third)};
        CHECK(end_of(at_zero) == 0);
        for (const pid_t child : others) CHECK(end_of(child) == 0);
    }
    SUBCASE("another job") {
        tcp::options wrong = third;
        wrong.job = "other";
        for (const pid_t child : {start_to_meet(first), start_to_meet(wrong)}) CHECK(end_of(child) == 4);
    }
    SUBCASE("two of one rank") {
        for (const pid_t child : {start_to_meet(first), start_to_meet(third), start_to_meet(third)})
            CHECK(end_of(child) == 5);
    }
}
