// An elastic team whose ranks are processes that are killed.
#include <rill/collective/all_reduce.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/tcp.hpp>

#include "processes.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace rill;

namespace {

/// A sum of all updates, and how many there were: wrong if one is missing, applied twice, or out of order.
struct model {
    std::vector<double> values = std::vector<double>(50'000, 0.0);
    double steps = 0;
    std::vector<double> latest = values;

    void add(const std::vector<double>& update) {
        latest = update;
        ++steps;
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = values[i] * 0.5 + update[i] + steps;
    }
    buffer pack() const {
        std::vector<double> all = values;
        all.push_back(steps);
        return bytes_of(all);
    }
    buffer changes() const { return bytes_of(latest); }
    void unpack(byte_view bytes) {
        std::vector<double> all = doubles_of(bytes, values.size() + 1);
        steps = all.back();
        all.pop_back();
        values = all;
    }
    void apply(byte_view bytes) { add(doubles_of(bytes, values.size())); }

    static buffer bytes_of(const std::vector<double>& of) {
        buffer bytes(of.size() * sizeof(double));
        std::memcpy(bytes.data(), of.data(), bytes.size());
        return bytes;
    }
    static std::vector<double> doubles_of(byte_view bytes, std::size_t count) {
        if (bytes.size() != count * sizeof(double)) throw std::runtime_error("a model of another size");
        std::vector<double> all(count);
        std::memcpy(all.data(), bytes.data(), bytes.size());
        return all;
    }
};

/// What the processes tell the test.
struct told {
    double checksum[8]{};
    std::size_t members[8]{};
    std::uint64_t steps[8]{};
    std::atomic<bool> has_gone_on{false}, is_told{false};
};
class shared_told {
  public:
    shared_told() = default;
    shared_told(const shared_told&) = delete;
    shared_told& operator=(const shared_told&) = delete;
    ~shared_told() { ::munmap(at, sizeof(told)); }

    told* const at =
        new (::mmap(nullptr, sizeof(told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) told;
};

/// Takes steps of two collectives each until there are `steps`, and at least `least` members. `between(step)` is called
/// between the collectives, `before(step)` before each attempt, and before `finish`.
template <class Net, class Between, class Before, class Shape = topology::ring>
void train(Net& net, std::uint64_t steps, told& tell, Between&& between, std::size_t least, Before&& before,
           Shape shape = {}) {
    elastic team{net, shape, {.timeout = seconds(60), .patience = seconds(2)}};
    model state;
    std::vector<double> mine(state.values.size()), sum(mine.size()), half(8, 1.0);
    for (;;) {
        team.settle(state);
        before(team.step());
        if (team.step() >= steps && team.view().members.size() >= least) break;
        mine.assign(mine.size(), net.rank() + 1.0);
        const bool done = team.attempt([&](auto& workers) {
            all_reduce(workers, half, half);
            between(team.step());
            all_reduce(workers, mine, sum);
        });
        if (done) state.add(sum);
        half.assign(half.size(), 1.0);
    }
    team.finish();
    const auto self = static_cast<std::size_t>(net.rank());
    tell.checksum[self] = 0;
    for (std::size_t i = 0; i < state.values.size(); ++i)
        tell.checksum[self] += state.values[i] * static_cast<double>(1 + i % 97);
    tell.members[self] = team.view().members.size();
    tell.steps[self] = team.step();
}
template <class Net, class Between>
void train(Net& net, std::uint64_t steps, told& tell, Between&& between, std::size_t least = 1) {
    train(net, steps, tell, between, least, [](std::uint64_t) {});
}

/// Calls `act()`; what it throws is printed and makes the process exit with 1.
template <class Act>
int outcome(rank_t rank, Act&& act) {
    try {
        act();
        return 0;
    } catch (const std::exception& caught) {
        std::fprintf(stderr, "rank %d: %s\n", rank, caught.what());
        return 1;
    }
}

const auto nothing = [](rank_t, std::uint64_t) {};

constexpr std::uint64_t all_steps = 40;

/// Four processes take 40 steps. `between(rank, step)` or `before(rank, step)` ends `victim` with `status`; the others
/// go on. `ends_late`: after the last step.
template <class Between, class Before, class Shape = topology::ring>
void goes_on_without(rank_t victim, int status, Between&& between, Before&& before, const tcp::options& own = {},
                     Shape shape = {}, bool ends_late = false) {
    constexpr std::uint64_t steps = all_steps;
    CAPTURE(victim);
    const shared_told all;
    const auto act = [&](const tcp::options& chosen) {
        return outcome(chosen.rank, [&] {
            tcp::run(
                [&](auto& net) {
                    train(
                        net, steps, *all.at, [&](std::uint64_t step) { between(net.rank(), step); }, 1,
                        [&](std::uint64_t step) { before(net.rank(), step); }, shape);
                },
                chosen);
        });
    };
    const std::vector<pid_t> started = processes::start(4, act, own);
    const std::size_t one = victim == 0 ? 1 : 0;
    for (std::size_t rank = 0; rank < started.size(); ++rank) {
        CAPTURE(rank);
        const bool is_victim = static_cast<rank_t>(rank) == victim;
        CHECK(processes::end_of(started[rank]) == (is_victim ? status : 0));
        if (is_victim) continue;
        CHECK((all.at->members[rank] == 3 || ends_late));
        CHECK(all.at->steps[rank] == steps);
        CHECK(all.at->checksum[rank] != 0);
        CHECK(all.at->checksum[rank] == all.at->checksum[one]);
    }
}

/// Kills the process of `victim` in its step 15.
auto killed_in_step(rank_t victim) {
    return [=](rank_t rank, std::uint64_t step) {
        if (rank == victim && step == 15) ::raise(SIGKILL);
    };
}

}  // namespace

TEST_CASE("when a process of a team is killed in mid-step, the others go on") {
    for (const rank_t victim : {0, 2}) goes_on_without(victim, 128 + SIGKILL, killed_in_step(victim), nothing);
}

TEST_CASE("when a process of a team over backup_tree is killed in mid-step, the others go on") {
    for (const rank_t victim : {0, 1, 3})
        goes_on_without(victim, 128 + SIGKILL, killed_in_step(victim), nothing, {}, topology::backup_tree{2});
}

TEST_CASE("when a process of a team over encrypted connections is killed in mid-step, the others go on") {
    tcp::options own;
    ranks::encrypt(own);
    for (const rank_t victim : {0, 2}) goes_on_without(victim, 128 + SIGKILL, killed_in_step(victim), nothing, own);
}

TEST_CASE("when the body of a process of a team throws, that process ends, and the others go on") {
    for (const rank_t victim : {0, 2})
        goes_on_without(victim, 1, nothing, [=](rank_t rank, std::uint64_t step) {
            if (rank == victim && step == 15) throw std::runtime_error("no more rows");
        });
}

TEST_CASE("when a process of a team ends after the last step, while others are in finish, these finish") {
    constexpr rank_t victim = 2;
    const auto rest = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
    const auto ends = [&](int status, auto end) {
        goes_on_without(
            victim, status, nothing,
            [=](rank_t rank, std::uint64_t step) {
                if (rank == 1 && step == all_steps) rest(600);
                if (rank == victim && step == all_steps) end();
            },
            {}, topology::ring{}, true);
    };
    SUBCASE("by an exception") {
        ends(1, [] { throw std::runtime_error("the disk is full"); });
    }
    SUBCASE("killed before finish") {
        ends(128 + SIGKILL, [] { ::raise(SIGKILL); });
    }
    SUBCASE("killed in finish") {
        ends(128 + SIGKILL, [=] {
            std::thread([=] {
                rest(200);
                ::raise(SIGKILL);
            }).detach();
        });
    }
}

TEST_CASE("a process of a team that ends because it is excluded leaves those in finish alone") {
    constexpr std::uint64_t steps = 60;
    constexpr rank_t victim = 1, slow = 0;
    const shared_told all;
    const auto act = [&](const tcp::options& chosen) {
        const int status = outcome(chosen.rank, [&] {
            tcp::run(
                [&](auto& net) {
                    train(
                        net, steps, *all.at,
                        [&](std::uint64_t step) {
                            if (net.rank() == victim && step == 15) ::raise(SIGSTOP);
                            if (net.rank() != victim && step == 25) all.at->has_gone_on = true;
                        },
                        1,
                        [&](std::uint64_t step) {
                            for (int i = 0; net.rank() == slow && step == steps && !all.at->is_told && i < 2000; ++i)
                                net.sleep_until(net.now() + milliseconds(10));
                        });
                },
                chosen);
        });
        if (chosen.rank == victim) all.at->is_told = true;
        return status;
    };
    const std::vector<pid_t> started =
        processes::start(4, act, {.patience = milliseconds(1200), .failure_timeout = seconds(50)});
    REQUIRE(processes::stops(started[victim]));
    for (int i = 0; i < 2000 && !all.at->has_gone_on; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(all.at->has_gone_on);
    ::kill(started[victim], SIGCONT);
    for (std::size_t rank = 0; rank < started.size(); ++rank) {
        CAPTURE(rank);
        CHECK(processes::end_of(started[rank]) == (static_cast<rank_t>(rank) == victim ? 1 : 0));
        if (static_cast<rank_t>(rank) == victim) continue;
        CHECK(all.at->steps[rank] == steps);
        CHECK(all.at->checksum[rank] == all.at->checksum[slow]);
    }
    CHECK(all.at->is_told);
}

TEST_CASE("a process of a team that is stopped for longer than the patience is left out, and is told so") {
    constexpr std::uint64_t steps = 150;
    constexpr rank_t victim = 1;
    const shared_told all;
    const auto act = [&](const tcp::options& chosen) {
        return outcome(chosen.rank, [&] {
            tcp::run(
                [&](auto& net) {
                    try {
                        train(net, steps, *all.at, [&](std::uint64_t step) {
                            if (net.rank() == victim && step == 15) ::raise(SIGSTOP);
                            if (net.rank() != victim && step == 25) all.at->has_gone_on = true;
                            if (step > 25) net.sleep_until(net.now() + milliseconds(10));
                        });
                    } catch (const excluded&) {
                        all.at->is_told = net.rank() == victim;
                    }
                },
                chosen);
        });
    };
    const std::vector<pid_t> started =
        processes::start(4, act, {.patience = milliseconds(1200), .failure_timeout = seconds(5)});
    REQUIRE(processes::stops(started[victim]));
    for (int i = 0; i < 2000 && !all.at->has_gone_on; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(all.at->has_gone_on);
    ::kill(started[victim], SIGCONT);
    for (const pid_t child : started) CHECK(processes::end_of(child) == 0);
    CHECK(all.at->is_told);
    for (const std::size_t rank : {0U, 2U, 3U}) {
        CHECK(all.at->members[rank] == 3);
        CHECK(all.at->steps[rank] == steps);
        CHECK(all.at->checksum[rank] == all.at->checksum[0]);
    }
}

TEST_CASE("a process that has been silent and is heard again gets messages and answers") {
    constexpr channel events{.context = 1}, beside{.context = 1, .tag = 1}, numbers{.context = 2};
    const auto act = [&](const tcp::options& chosen) {
        return outcome(chosen.rank, [&] {
            tcp::run(
                [&](auto& net) {
                    net.monitor(events);
                    if (net.rank() == 1) {
                        net.post(0, numbers, buffer(1));
                        net.receive(0, numbers, deadline::never);
                        ::raise(SIGSTOP);
                        net.announce(3, {.number = 1});
                        if (!net.receive(0, numbers, net.now() + seconds(20))) throw std::runtime_error("no message");
                        return;
                    }
                    net.receive(1, numbers, deadline::never);
                    net.post(1, numbers, buffer(1));
                    const auto told = [&] { return read_peer_event(*net.receive(1, events, deadline::never)).kind; };
                    bool has_failed = false;
                    try {
                        net.receive(1, beside, deadline::never);
                    } catch (const peer_failure& thrown) {
                        has_failed = thrown.culprit() == 1 && thrown.notice().other == 0;
                    }
                    if (!has_failed || told() != peer_change::silent) throw std::runtime_error("it is not silent");
                    if (told() != peer_change::recovered) throw std::runtime_error("it is not heard again");
                    net.post(1, numbers, buffer(1));
                    const auto said = net.inquire(1, 3, 1, net.now() + seconds(20));
                    if (!said || said->kind == operation::departure) throw std::runtime_error("it does not answer");
                },
                chosen);
        });
    };
    const std::vector<pid_t> started =
        processes::start(2, act, {.patience = milliseconds(400), .failure_timeout = seconds(5)});
    REQUIRE(processes::stops(started[1]));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ::kill(started[1], SIGCONT);
    for (const pid_t child : started) CHECK(processes::end_of(child) == 0);
}

TEST_CASE("a process of a team that is stopped is back in time, or is left out: no step fails") {
    constexpr std::uint64_t steps = 200;
    constexpr rank_t victim = 1;
    int left_out = 0, back = 0;
    // The others take it for silent after 400 ms; some of them a little later than others.
    for (int stopped = 250; stopped <= 700; stopped += 150) {
        CAPTURE(stopped);
        const shared_told all;
        const auto act = [&](const tcp::options& chosen) {
            return outcome(chosen.rank, [&] {
                tcp::run(
                    [&](auto& net) {
                        try {
                            train(net, steps, *all.at, [&](std::uint64_t step) {
                                if (net.rank() == victim && step == 15 && !all.at->has_gone_on.exchange(true))
                                    ::raise(SIGSTOP);
                                net.sleep_until(net.now() + milliseconds(3));
                            });
                        } catch (const excluded&) {
                            all.at->is_told = net.rank() == victim;
                        }
                    },
                    chosen);
            });
        };
        const std::vector<pid_t> started =
            processes::start(4, act, {.patience = milliseconds(400), .failure_timeout = seconds(5)});
        REQUIRE(processes::stops(started[victim]));
        std::this_thread::sleep_for(std::chrono::milliseconds(stopped));
        ::kill(started[victim], SIGCONT);
        for (const pid_t child : started) CHECK(processes::end_of(child) == 0);
        const std::size_t members = all.at->is_told ? 3 : 4;
        ++(all.at->is_told ? left_out : back);
        for (std::size_t rank = 0; rank < started.size(); ++rank) {
            CAPTURE(rank);
            if (all.at->is_told && rank == victim) continue;
            CHECK(all.at->members[rank] == members);
            CHECK(all.at->steps[rank] == steps);
            CHECK(all.at->checksum[rank] == all.at->checksum[0]);
        }
    }
    CHECK(left_out > 0);
    CHECK(back > 0);
}

TEST_CASE("a process that was killed begins anew and joins; so does one on a free seat") {
    constexpr std::uint64_t steps = 60;
    constexpr std::uint64_t deaths = 15;
    const std::string file = "file:/tmp/rill_elastic_" + std::to_string(tcp::detail::random_number());
    struct kind {
        rank_t victim;
        std::string interfaces, meeting;
    };
    const kind kinds[] = {{2, "", ""}, {3, "127.0.0.1,127.0.0.2", ""}, {0, "", ""}, {0, "", file}};
    for (const auto& [which, interfaces, meeting] : kinds) {
        const rank_t victim = which;
        CAPTURE(victim);
        CAPTURE(meeting);
        const shared_told all;
        tcp::options own;
        const auto act = [&](const tcp::options& chosen) {
            return outcome(chosen.rank, [&] {
                tcp::run(
                    [&](auto& net) {
                        train(
                            net, steps, *all.at,
                            [&](std::uint64_t step) {
                                if (chosen.rank == victim && !chosen.joins && step == deaths) ::raise(SIGKILL);
                                if (step > deaths) net.sleep_until(net.now() + milliseconds(5));
                            },
                            5);
                    },
                    chosen);
            });
        };
        std::vector<pid_t> started = processes::start(
            4, act, own = {.seats = 5, .meeting = meeting, .interfaces = interfaces, .failure_timeout = seconds(5)},
            &own);
        CHECK(processes::end_of(started[static_cast<std::size_t>(victim)]) == 128 + SIGKILL);
        own.joins = true;
        for (const rank_t rank : {victim, 4}) {
            own.rank = rank;
            const pid_t child = processes::start_one(act, own);
            rank == victim ? void(started[static_cast<std::size_t>(victim)] = child) : started.push_back(child);
        }
        for (std::size_t rank = 0; rank < started.size(); ++rank) {
            CAPTURE(rank);
            CHECK(processes::end_of(started[rank]) == 0);
            CHECK(all.at->members[rank] == 5);
            CHECK(all.at->steps[rank] == all.at->steps[0]);
            CHECK(all.at->checksum[rank] == all.at->checksum[0]);
        }
        CHECK(all.at->steps[0] >= steps);
    }
    CHECK(std::remove(tcp::detail::path_of(file).c_str()) == 0);
}

TEST_CASE("a process that is killed while the others wait for it begins anew at once, and all go on with it") {
    constexpr std::uint64_t steps = 30, deaths = 15;
    /// A newcomer that dies with the state of the others in its hands.
    struct mortal_model : model {
        bool dies = false;
        void unpack(byte_view bytes) {
            if (dies) ::raise(SIGKILL);
            model::unpack(bytes);
        }
    };
    for (const rank_t victim : {0, 2}) {
        CAPTURE(victim);
        const shared_told all;
        tcp::options own;
        bool dies = false;
        const auto act = [&](const tcp::options& chosen) {
            return outcome(chosen.rank, [&] {
                tcp::run(
                    [&](auto& net) {
                        elastic team{net, topology::ring{}, {.least = 3, .timeout = seconds(60)}};
                        mortal_model state;
                        state.dies = dies;
                        std::vector<double> mine(state.values.size(), net.rank() + 1.0), sum(mine.size());
                        while (team.step() < steps) {
                            if (team.settle(state).members.size() != 3) throw std::runtime_error("a view of too few");
                            const bool done = team.attempt([&](auto& workers) {
                                if (chosen.rank == victim && !chosen.joins && team.step() == deaths) ::raise(SIGKILL);
                                all_reduce(workers, mine, sum);
                            });
                            if (done) state.add(sum);
                        }
                        team.finish();
                        const auto self = static_cast<std::size_t>(net.rank());
                        for (const double value : state.values) all.at->checksum[self] += value;
                        all.at->steps[self] = team.step();
                    },
                    chosen);
            });
        };
        std::vector<pid_t> started = processes::start(3, act, own = {.seats = 3, .failure_timeout = seconds(5)}, &own);
        pid_t& last = started[static_cast<std::size_t>(victim)];
        own.joins = true;
        own.rank = victim;
        for (const bool again : {true, false}) {
            CHECK(processes::end_of(last) == 128 + SIGKILL);
            dies = again;
            last = processes::start_one(act, own);
        }
        for (std::size_t rank = 0; rank < started.size(); ++rank) {
            CAPTURE(rank);
            CHECK(processes::end_of(started[rank]) == 0);
            CHECK(all.at->steps[rank] == steps);
            CHECK(all.at->checksum[rank] != 0);
            CHECK(all.at->checksum[rank] == all.at->checksum[1]);
        }
    }
}

TEST_CASE("a process is refused that wants the seat of one that lives, or has other options, or comes too early") {
    tcp::options own;
    const auto waits = [](const tcp::options& chosen) {
        return outcome(chosen.rank, [&] {
            tcp::run([](auto& net) { net.receive(1 - net.rank(), {.context = 1}, net.now() + seconds(5)); }, chosen);
        });
    };
    const auto said_to = [](const tcp::options& chosen) {
        return ranks::text_of(ranks::thrown_by([&] { const tcp::endpoint none(chosen); }));
    };
    const std::vector<pid_t> started =
        processes::start(2, waits, own = {.seats = 3, .failure_timeout = seconds(5)}, &own);
    own.joins = true;
    own.patience = milliseconds(200);
    for (const rank_t rank : {0, 1}) {
        own.rank = rank;
        CHECK(said_to(own).find("a process that has not ended is rank " + std::to_string(rank) + " of this job") !=
              std::string::npos);
    }
    own.rank = 2;
    own.mailbox_bytes = 5000;
    CHECK(said_to(own).find("rank 2 has another value of mailbox_bytes") != std::string::npos);
    for (const pid_t child : started) CHECK(processes::end_of(child) == 0);

    own.meeting_timeout = milliseconds(300);
    CHECK(said_to(own).find("no rank answers at 127.0.0.1:") != std::string::npos);
}

TEST_CASE("a process joins whenever the others end, or is told that nobody answers") {
    int joined = 0;
    for (int lasts = 0; lasts < 30; ++lasts) {
        CAPTURE(lasts);
        tcp::options own;
        const auto act = [&](const tcp::options& chosen) {
            return outcome(chosen.rank, [&] {
                tcp::run(
                    [&](auto& net) {
                        net.monitor({.context = 1, .tag = 1});
                        net.sleep_until(net.now() + milliseconds(chosen.rank * 20 + lasts * 3));
                        if (chosen.rank == 1 && lasts % 3 == 0) ::raise(SIGKILL);
                    },
                    chosen);
            });
        };
        const std::vector<pid_t> started =
            processes::start(3, act, own = {.seats = 4, .failure_timeout = seconds(5)}, &own);
        own.joins = true;
        own.rank = 3;
        own.meeting_timeout = milliseconds(1000);
        const std::string said = ranks::text_of(
            ranks::thrown_by([&] { tcp::run([](auto& net) { net.monitor({.context = 1, .tag = 1}); }, own); }));
        joined += said.empty() ? 1 : 0;
        CHECK_MESSAGE((said.empty() || said.find("no rank answers at ") != said.npos), said);
        for (std::size_t rank = 0; rank < started.size(); ++rank) {
            CAPTURE(rank);
            CHECK(processes::end_of(started[rank]) == (rank == 1 && lasts % 3 == 0 ? 128 + SIGKILL : 0));
        }
    }
    CHECK(joined != 0);
}
