// How fast ranks with random computing times make rounds: rill's protocols in a simulated network whose messages take
// nearly no time, beside a plain Monte Carlo. `bench_rna_pace CASE ROUNDS` prints a case's figures as JSON.
#include "waits.hpp"

#include "shared/expected.hpp"

#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill::straggler;
using rna_bench::pace;
using rna_bench::task;

constexpr rill::topology::recursive_doubling topology{};

rill::simulated::network network_of(const task& of, int ranks, std::uint64_t seed) {
    return {.latency = rill::nanoseconds(100),
            .bandwidth = 0,
            .computing = [=](rill::rank_t rank, std::uint64_t gradient, double) {
                rill::random_sequence draw(rill::random_key{seed}.derive(rank, gradient));
                return rill::nanoseconds(static_cast<std::int64_t>(of.draw(draw, rank, ranks) * 1e6));
            }};
}

/// What all ranks of a run have seen. They share one thread.
struct watch {
    std::vector<rill::time_point> reached{};  ///< when the first rank has pulled each version
    double counted = 0;                       ///< gradients
    double contributors = 0;                  ///< of all rounds

    void see(std::uint64_t version, rill::time_point now) {
        if (reached.size() <= version) reached.resize(version + 1, rill::time_point{-1});
        if (reached[version].ns < 0) reached[version] = now;
    }
    double median_ms() const {
        std::vector<double> lengths;
        for (std::size_t v = 1; v < reached.size(); ++v)
            if (reached[v].ns >= 0 && reached[v - 1].ns >= 0)
                lengths.push_back((reached[v] - reached[v - 1]).seconds() * 1000);
        return rna_bench::median(std::move(lengths));
    }
};

/// Gradients are -1, and a step of rate 1 adds up what counts: the model counts gradients or contributors.
template <class Trigger, class Staleness, class Backlog>
pace rounds_of(const task& of, int ranks, std::uint64_t rounds, const Trigger& trigger, const Staleness& staleness,
               const Backlog& backlog, std::uint64_t seed = 7) {
    pace made;
    watch all;
    rill::simulated::run(ranks, network_of(of, ranks, seed), [&](rill::simulated::endpoint& net) {
        rill::group workers{net, topology, {.timeout = rill::seconds(1000), .seed = seed}};
        std::vector<double> model(1);
        const std::vector<double> gradient{-1};
        const rill::train::descent add{rill::train::sgd{}, rill::train::constant_rate{1}};
        rill::partial_all_reduce replica{workers, trigger, staleness, backlog, add, model};
        while (const auto held = replica.pull(model)) {
            all.see(held->version, net.now());
            if (held->version >= rounds) {
                replica.end();
                continue;
            }
            net.compute(1);
            replica.push(gradient, *held);
        }
        std::set<std::uint64_t> in;
        while (const auto fate = replica.fate())
            if (fate->what == rill::push_fate::outcome::counted) {
                all.counted += 1;
                in.insert(fate->round);
            }
        all.contributors += static_cast<double>(in.size());
        rill::barrier(workers);
        if (net.rank() != 0) return;
        const double seconds = (net.now() - rill::time_point{}).seconds();
        const auto version = static_cast<double>(replica.version());
        const bool counts_gradients = backlog.weight(2) == 2;
        const double due = counts_gradients ? all.counted : all.contributors;
        bench::require(std::abs(model[0] - due) < 1e-6, "the model");
        made = {version / seconds, all.counted / seconds, all.contributors / version, rounds < 2 ? 0 : all.median_ms()};
    });
    if (rounds < 2) made.median_ms = (all.reached.at(1) - rill::time_point{}).seconds() * 1000;
    return made;
}

pace barrier(const task& of, int ranks, std::uint64_t steps) {
    pace seen;
    rill::simulated::run(ranks, network_of(of, ranks, 7), [&](rill::simulated::endpoint& net) {
        rill::group workers{net, topology, {.timeout = rill::seconds(1000)}};
        std::vector<double> gradient(1), sum(1);
        for (std::uint64_t step = 0; step < steps; ++step) {
            net.compute(1);
            gradient[0] = 1;
            rill::all_reduce(workers, gradient, sum);
            bench::require(sum[0] == ranks, "the sum of a step");
        }
        const double seconds = (net.now() - rill::time_point{}).seconds(), all = static_cast<double>(steps);
        seen = {all / seconds, all * ranks / seconds, static_cast<double>(ranks), 0};
    });
    return seen;
}

/// Gradients per second that reach a parameter server on a rank of its own, until the first worker has computed
/// `gradients`. They are -1, and each moves the model by 1: the final model is their number.
template <class Staleness>
double served(const task& of, int workers, std::uint64_t gradients, const Staleness& staleness) {
    double pushed = 0, seconds = 0;
    rill::simulated::run(workers + 1, network_of(of, workers, 7), [&](rill::simulated::endpoint& net) {
        const rill::train::descent add{rill::train::sgd{}, rill::train::constant_rate{1}};
        std::vector<double> model(1);
        const std::vector<double> gradient{-1};
        rill::parameter_server replica{net, {.servers = 1, .timeout = rill::seconds(1000)}, staleness, add, model};
        std::uint64_t own = 0;
        while (const auto held = replica.pull(model)) {
            if (seconds > 0) {
                replica.end();
                continue;
            }
            net.compute(1);
            replica.push(gradient, *held);
            pushed += 1;
            if (++own == gradients) seconds = (net.now() - rill::time_point{}).seconds();
        }
        if (!replica.is_server()) bench::require(model[0] == pushed, "the model");
    });
    return pushed / seconds;
}

void print(const char* name, const pace& of, bool last = false) {
    std::printf("\"%s\": {\"rounds\": %.6g, \"gradients\": %.6g, \"contributors\": %.6g}%s", name, of.rounds,
                of.gradients, of.contributors, last ? "" : ", ");
}
/// A system beside the barrier, by rill and by the plain simulation.
void print_system(const char* name, const pace& rill, const pace& plain, const pace& base, const pace& plain_base) {
    std::printf("\"%s\": {", name);
    print("rill", rill);
    print("plain", plain);
    std::printf(
        "\"rounds_over_bsp\": %.6g, \"gradients_over_bsp\": %.6g, \"plain_rounds_over_bsp\": %.6g, "
        "\"plain_gradients_over_bsp\": %.6g}, ",
        rill.rounds / base.rounds, rill.gradients / base.gradients, plain.rounds / plain_base.rounds,
        plain.gradients / plain_base.gradients);
}

/// How long 100 ranks take to answer when 1, 2 or 3 of them are probed: tasks that begin with the probe, and tasks that
/// go on.
void response(std::uint64_t rounds) {
    constexpr int ranks = 100;
    const task of{.from = 10, .to = 50};
    std::printf("{");
    for (int probes = 1; probes <= 3; ++probes) {
        std::vector<double> anew;
        for (std::uint64_t run = 0; run < rounds; ++run)
            anew.push_back(rounds_of(of, ranks, 1, two_choices{probes}, in_step{}, plain_sum{}, run).median_ms);
        const pace on = rounds_of(of, ranks, 4 * rounds, two_choices{probes}, bounded{64}, linear_mean{});
        const pace plain = rna_bench::play(of, ranks, probes, false, 20'000, 1);
        std::vector<double> plain_anew;
        for (std::uint64_t run = 0; run < 20'000; ++run)
            plain_anew.push_back(rna_bench::play(of, probes, probes, false, 1, run).median_ms);
        std::printf(
            "\"probes_%d\": {\"anew_ms\": %.6g, \"plain_anew_ms\": %.6g, \"going_on_ms\": %.6g, "
            "\"plain_going_on_ms\": %.6g}%s",
            probes, rna_bench::median(anew), rna_bench::median(plain_anew), on.median_ms, plain.median_ms,
            probes == 3 ? "" : ", ");
    }
    std::printf("}\n");
}

/// RNA and eager-SGD beside the barrier, where 16 ranks take between 10 and 60 ms.
void uniform(std::uint64_t rounds) {
    constexpr int ranks = 16;
    const task of{};
    const pace base = barrier(of, ranks, rounds), plain_base = rna_bench::play(of, ranks, 0, true, 20'000, 1);
    std::printf("{");
    print_system("rna", rounds_of(of, ranks, 4 * rounds, two_choices{2}, bounded{64}, linear_mean{}),
                 rna_bench::play(of, ranks, 2, false, 80'000, 2), base, plain_base);
    print_system("eager", rounds_of(of, ranks, 2 * rounds, majority{}, in_step{}, plain_sum{}),
                 rna_bench::play(of, ranks, 1, true, 40'000, 3), base, plain_base);
    print("bsp", base);
    print("plain_bsp", plain_base, true);
    std::printf("}\n");
}

/// A parameter server with bounded and without bounded staleness beside the barrier: gradients per second. Ranks take
/// between 10 and 60 ms; or between 25 and 75, and half of them 50 more.
void servers(std::uint64_t rounds) {
    constexpr int ranks = 16;
    std::printf("{");
    for (const auto& [name, of] :
         {std::pair("alike", task{}), std::pair("mixed", task{.from = 25, .to = 75, .second_half = 50})}) {
        const double base = barrier(of, ranks, rounds).gradients;
        std::printf("\"%s\": {\"ssp_1\": %.6g, \"ssp_3\": %.6g, \"bap\": %.6g}%s", name,
                    served(of, ranks, rounds, bounded{1}) / base, served(of, ranks, rounds, bounded{3}) / base,
                    served(of, ranks, rounds, unbounded{}) / base, std::string(name) == "mixed" ? "" : ", ");
    }
    std::printf("}\n");
}

/// Gradients per second of RNA beside the barrier, where times are lognormal as a translator's on its sentences.
void lognormal(std::uint64_t rounds) {
    const task of{.kind = task::law::lognormal, .from = 1219, .to = 760, .least = 156, .most = 8000};
    std::printf("{");
    for (const int ranks : {8, 16, 32}) {
        const pace base = barrier(of, ranks, rounds), plain_base = rna_bench::play(of, ranks, 0, true, 20'000, 1);
        const pace rill = rounds_of(of, ranks, 4 * rounds, two_choices{2}, bounded{64}, linear_mean{});
        const pace plain = rna_bench::play(of, ranks, 2, false, 80'000, 2);
        std::printf("\"p%d\": {\"gradients_over_bsp\": %.6g, \"plain_gradients_over_bsp\": %.6g}%s", ranks,
                    rill.gradients / base.gradients, plain.gradients / plain_base.gradients, ranks == 32 ? "" : ", ");
    }
    std::printf("}\n");
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const std::string which = count == 3 ? arguments[1] : "";
        const std::uint64_t rounds = count == 3 ? std::strtoull(arguments[2], nullptr, 10) : 0;
        const auto run = which == "response"    ? &response
                         : which == "uniform"   ? &uniform
                         : which == "lognormal" ? &lognormal
                         : which == "servers"   ? &servers
                                                : nullptr;
        if (run == nullptr || rounds == 0) {
            std::fprintf(stderr, "usage: bench_rna_pace response|uniform|lognormal|servers ROUNDS\n");
            return 2;
        }
        run(rounds);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_rna_pace: %s\n", failed.what());
        return 1;
    }
}
