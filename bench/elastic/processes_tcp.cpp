// usage: bench_elastic_processes_tcp HOW PARAMETERS STEPS [VICTIM STEP AFTER_MS [FOLDER]]
//
// One rank of a job over TCP, whose steps sleep for 30 ms as if they computed and then sum their gradients. Rank VICTIM
// is killed (SIGKILL) AFTER_MS after it has begun a step. HOW:
// - elastic: a team, which goes on; without a victim its patience with a silent rank is 1 s;
// - plain: a group, which ends with an error. Rank 0 writes a checkpoint to FOLDER every 20 steps, with which the job
//   begins when it is started again;
// - by_turns: plain and elastic steps in the same processes;
// - adaptive, fixed: a group on backup_tree, which measures when a link is silent, or waits for 500 ms.
// Prints JSON: by the clock that all processes of the machine share, when each step was committed, and when the victim
// was killed.
#include "job.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/transport/tcp.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using rill::rank_t;
using rill::tcp::endpoint;

constexpr std::uint64_t saved_every = 20;

struct job {
    std::size_t parameters = 0;
    std::uint64_t steps = 0;
    rank_t victim = rill::no_rank;
    std::uint64_t killed_in = 0;
    int after_ms = 0;
    std::string folder{};
};

double clock_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The victim's last step.
void die_later(const job& of, rank_t rank, std::uint64_t step) {
    if (rank != of.victim || step != of.killed_in) return;
    std::thread([after = of.after_ms] {
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
        std::printf("{\"killed\": %.6f}\n", clock_seconds());
        std::fflush(stdout);
        std::raise(SIGKILL);
    }).detach();
}
void compute() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

std::string text_of(const std::vector<double>& numbers) {
    std::string text;
    for (const double each : numbers) {
        char number[32];
        std::snprintf(number, sizeof number, "%s%.6f", text.empty() ? "[" : ", ", each);
        text += number;
    }
    return text + "]";
}

/// What a rank knows of its steps.
struct record {
    std::vector<double> committed;
    std::uint64_t first = 0;  ///< the number of the first of them
    std::size_t members = 0;

    void step() { committed.push_back(clock_seconds()); }
    void print(rank_t rank, const elastic_bench::state& own) const {
        const std::uint64_t sum = rill::checksum(std::as_bytes(std::span(own.parameters)));
        std::printf("{\"rank\": %d, \"members\": %zu, \"checksum\": \"%016llx\", \"first\": %llu, \"committed\": %s}\n",
                    rank, members, static_cast<unsigned long long>(sum), static_cast<unsigned long long>(first),
                    text_of(committed).c_str());
        std::fflush(stdout);
    }
};

/// So that others know when to cut and unplug.
void say_step(rank_t rank, std::uint64_t done) {
    if (rank != 0) return;
    std::printf("step %llu\n", static_cast<unsigned long long>(done));
    std::fflush(stdout);
}

std::vector<std::vector<rank_t>> all_members(const job& of, const endpoint& net) {
    std::vector<rank_t> all;
    for (rank_t rank = 0; rank < net.size(); ++rank) all.push_back(rank);
    return std::vector<std::vector<rank_t>>(of.steps, all);
}
void require_expected(const elastic_bench::state& own, const std::vector<std::vector<rank_t>>& members) {
    if (own.parameters != elastic_bench::expected(own.parameters.size(), members))
        throw std::runtime_error("the parameters are not those of the steps");
}

/// One committed step.
template <class Team>
void elastic_step(Team& team, const job& of, endpoint& net, elastic_bench::state& own, std::vector<float>& gradient,
                  std::vector<float>& sum, std::vector<std::vector<rank_t>>& members) {
    for (;;) {
        const rill::view& crew = team.settle(own);
        const std::uint64_t step = team.step();
        if (step == of.steps) return;
        members.resize(step);
        members.push_back(crew.members);
        die_later(of, net.rank(), step);
        elastic_bench::fill(gradient, step, net.rank());
        compute();
        if (!team.attempt([&](auto& workers) { rill::all_reduce(workers, gradient, sum); })) continue;
        return own.step(sum);
    }
}

void go_on(const job& of, endpoint& net) {
    elastic_bench::state own(of.parameters);
    std::vector<float> gradient(of.parameters), sum(of.parameters);
    std::vector<std::vector<rank_t>> members;
    record seen;
    rill::elastic team{net, rill::topology::ring{}, {.patience = rill::seconds(2)}};
    while (team.step() < of.steps) {
        elastic_step(team, of, net, own, gradient, sum, members);
        seen.step();
        say_step(net.rank(), team.step());
    }
    seen.members = team.view().members.size();
    team.finish();
    require_expected(own, members);
    seen.print(net.rank(), own);
}

void plain_step(const job& of, auto& workers, endpoint& net, std::uint64_t step, elastic_bench::state& own,
                std::vector<float>& gradient, std::vector<float>& sum) {
    die_later(of, net.rank(), step);
    elastic_bench::fill(gradient, step, net.rank());
    compute();
    rill::all_reduce(workers, gradient, sum);
    own.step(sum);
}

/// Steps on backup_tree, whose links may be cut from outside.
void go_round(const job& of, endpoint& net, const rill::detect& silence) {
    elastic_bench::state own(of.parameters);
    std::vector<float> gradient(of.parameters), sum(of.parameters);
    record seen;
    rill::group workers{net, rill::topology::backup_tree{.detect = silence}};
    for (std::uint64_t step = 0; step < of.steps; ++step) {
        plain_step(of, workers, net, step, own, gradient, sum);
        seen.step();
        say_step(net.rank(), step + 1);
    }
    seen.members = static_cast<std::size_t>(net.size());
    require_expected(own, all_members(of, net));
    seen.print(net.rank(), own);
}

void restart(const job& of, endpoint& net) {
    const std::string file = of.folder + "/elastic.checkpoint";
    elastic_bench::state own(of.parameters);
    std::vector<float> gradient(of.parameters), sum(of.parameters);
    record seen{.committed = {}, .members = static_cast<std::size_t>(net.size())};
    if (std::filesystem::exists(file)) {
        const auto saved = rill::train::checkpoint::load(file);
        saved.read("parameters", own.parameters);
        saved.read("velocity", own.velocity);
        seen.first = saved.read<std::uint64_t>("step");
    }
    rill::group workers{net, rill::topology::ring{}};
    for (std::uint64_t step = seen.first; step < of.steps; ++step) {
        if (net.rank() == 0 && step != seen.first && step % saved_every == 0) {
            rill::train::checkpoint::writer out;
            out.add("parameters", own.parameters);
            out.add("velocity", own.velocity);
            out.add("step", step);
            out.save(file);
        }
        plain_step(of, workers, net, step, own, gradient, sum);
        seen.step();
    }
    require_expected(own, all_members(of, net));
    seen.print(net.rank(), own);
}

/// The seconds of a plain and of an elastic step.
void by_turns(const job& of, endpoint& net) {
    elastic_bench::state plain(of.parameters), own(of.parameters);
    std::vector<float> gradient(of.parameters), sum(of.parameters);
    std::vector<std::vector<rank_t>> members;
    rill::group workers{net, rill::topology::ring{}};
    rill::elastic team{net, rill::topology::ring{}, {}};
    std::vector<double> seconds[2];
    for (std::uint64_t step = 0; step < of.steps; ++step) {
        rill::barrier(workers);
        const double start = clock_seconds();
        plain_step(of, workers, net, step, plain, gradient, sum);
        rill::barrier(workers);
        const double middle = clock_seconds();
        elastic_step(team, of, net, own, gradient, sum, members);
        rill::barrier(workers);
        if (step == 0) continue;  // the view's group is made, and states are compared
        seconds[0].push_back(middle - start);
        seconds[1].push_back(clock_seconds() - middle);
    }
    team.finish();
    if (own.parameters != plain.parameters) throw std::runtime_error("elastic steps have another result");
    if (net.rank() != 0) return;
    std::printf("{\"plain\": %s, \"elastic\": %s}\n", text_of(seconds[0]).c_str(), text_of(seconds[1]).c_str());
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at) { return argc > at ? std::atoll(argv[at]) : 0; };
    job of{.parameters = static_cast<std::size_t>(number(2)), .steps = static_cast<std::uint64_t>(number(3))};
    if (argc > 6) {
        of.victim = static_cast<rank_t>(number(4));
        of.killed_in = static_cast<std::uint64_t>(number(5));
        of.after_ms = static_cast<int>(number(6));
    }
    if (argc > 7) of.folder = argv[7];
    const std::string how = argc > 3 ? argv[1] : "";
    if (how != "elastic" && how != "plain" && how != "by_turns" && how != "adaptive" && how != "fixed") {
        std::fprintf(stderr, "usage: %s HOW PARAMETERS STEPS [VICTIM STEP AFTER_MS [FOLDER]]\n", argv[0]);
        return 2;
    }
    try {
        auto chosen = rill::tcp::options::from_environment();
        if (how == "elastic" && of.victim == rill::no_rank) chosen.patience = rill::seconds(1);
        chosen.failure_timeout = rill::seconds(1);
        rill::tcp::run(
            [&](endpoint& net) {
                try {
                    if (how == "elastic") return go_on(of, net);
                    if (how == "plain") return restart(of, net);
                    if (how == "by_turns") return by_turns(of, net);
                    go_round(of, net, how == "fixed" ? rill::detect::fixed(rill::milliseconds(500)) : rill::detect{});
                } catch (const rill::excluded&) {  // it was unplugged
                } catch (const rill::no_quorum&) {
                }
            },
            chosen);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failed.what());
        return 1;
    }
}
