// The cost of the simulated network: `bench_simulation_scale CASE RANKS` runs one case and prints its figures as JSON.
// Each case has a process of its own, so that its peak of memory is its own.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/compressed_bsp.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/softmax_regression.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace train = rill::train;

/// The cost of a case, and its results.
struct figures {
    double seconds = 0;
    std::uint64_t messages = 0;
    double kib_per_rank = 0;  ///< resident, beyond what the process had before
    double virtual_seconds = 0;
    double loss = 0;
};

double resident_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stod(line.substr(6));
    throw std::runtime_error("no VmRSS in /proc/self/status");
}

double peak_gib() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_maxrss) / (1 << 20);
}

template <class Body>
figures timed(int ranks, Body&& body) {
    const double before = resident_kib();
    const auto start = std::chrono::steady_clock::now();
    const auto report = rill::simulated::run(ranks, {}, body);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return {.seconds = took.count(),
            .messages = report.messages,
            .kib_per_rank = (peak_gib() * (1 << 20) - before) / ranks,
            .virtual_seconds = report.elapsed.seconds()};
}

/// 1,000 floats among all ranks.
figures doubling(int ranks) {
    int wrong = 0;
    const figures all = timed(ranks, [&](auto& net) {
        rill::group workers{net, rill::topology::recursive_doubling{}};
        std::vector<float> input(1000, static_cast<float>(net.rank() % 2)), output(input.size());
        rill::all_reduce(workers, input, output);
        wrong += output != std::vector<float>(1000, static_cast<float>(ranks / 2));
    });
    if (wrong != 0) throw std::logic_error("the sum is wrong on " + std::to_string(wrong) + " ranks");
    return all;
}

/// The first rounds of a schedule.
template <class Plan>
struct beginning_of {
    Plan whole;
    int some;

    int parts() const { return whole.parts(); }
    int rounds() const { return some; }
    rill::action kind(int round) const { return whole.kind(round); }
    int sends(int round) const { return whole.sends(round); }
    rill::transfer send(int round, int i) const { return whole.send(round, i); }
    int receives(int round) const { return whole.receives(round); }
    rill::transfer receive(int round, int i) const { return whole.receive(round, i); }
    friend bool operator==(const beginning_of&, const beginning_of&) = default;
};
template <class Plan>
beginning_of(Plan, int) -> beginning_of<Plan>;  // clang 16 needs it for an aggregate

/// Counts what arrives, and sends a kibibyte in each message.
struct counting_state {
    static constexpr bool overwrites_nothing = true;

    std::vector<std::byte> part = std::vector<std::byte>(1024);
    std::size_t arrived = 0;

    rill::byte_pieces outgoing(rill::part_range, rill::action) { return rill::byte_view(part); }
    void fold(auto arrivals) { arrived += arrivals.size(); }
    void copy(auto& arrivals) { arrived += arrivals.size(); }
};

/// 100 rounds of a ring: 10^6 messages among 10,000 ranks.
figures ring(int ranks) {
    constexpr int rounds = 100;
    int wrong = 0;
    const figures all = timed(ranks, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        counting_state state;
        workers.run({.kind = rill::operation::all_reduce}, [&](auto& call) {
            rill::execute(call, beginning_of{rill::topology::ring{}.all_reduce(ranks, net.rank()), rounds}, state);
            return rill::receipt{};
        });
        wrong += state.arrived != rounds;
    });
    if (wrong != 0) throw std::logic_error("messages are missing on " + std::to_string(wrong) + " ranks");
    return all;
}

/// Small messages between the ranks, each of which sends to four others in turn.
figures small(int ranks) {
    constexpr int rounds = 8192;
    int wrong = 0;
    const figures all = timed(ranks, [&](auto& net) {
        constexpr rill::channel on{.context = 1, .tag = 1};
        const std::vector<std::byte> bytes(64, static_cast<std::byte>(net.rank()));
        for (int round = 0; round < rounds; ++round)
            for (const int distance : {1, 2, 4, 8}) {
                auto sending = net.post((net.rank() + distance) % ranks, on, rill::byte_view(bytes));
                const rill::rank_t source = (net.rank() - distance + ranks) % ranks;
                {
                    const auto came = net.receive(source, on, rill::deadline::never);
                    const rill::byte_view content = *came->pieces().begin();
                    wrong += content.size() != 64 || content.back() != static_cast<std::byte>(source);
                }
                sending.wait(rill::deadline::never);
            }
    });
    if (wrong != 0) throw std::logic_error(std::to_string(wrong) + " messages are wrong");
    return all;
}

/// Ranks that wait for one that says nothing.
figures idle(int ranks) {
    const double before = resident_kib();
    double waiting = 0;
    figures all = timed(ranks, [&](auto& net) {
        constexpr rill::channel on{.context = 1, .tag = 1};
        if (net.rank() != 0) return static_cast<void>(net.receive(0, on, rill::deadline::never));
        net.sleep_until(rill::time_point{} + rill::seconds(1));
        waiting = resident_kib();
        for (rill::rank_t r = 1; r < ranks; ++r) net.post(r, on, rill::buffer(1));
    });
    all.kib_per_rank = (waiting - before) / ranks;
    return all;
}

/// 100 steps of top-k SGD on softmax regression over Fashion-MNIST, a shard for each rank.
figures training(int ranks, const std::string& folder) {
    const train::dataset images =
        train::read_idx_dataset(folder + "/train-images-idx3-ubyte.gz", folder + "/train-labels-idx1-ubyte.gz", 10);
    double loss = 0;
    figures all = timed(ranks, [&](auto& net) {
        const train::compressed_bsp plan{
            rill::topology::recursive_doubling{},
            rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}},
            train::sgd{.momentum = 0.5},
            train::constant_rate{0.1},
        };
        train::trainer trainer{net, train::softmax_regression<float>(images.columns, 10),
                               train::minibatches{images, {.batch = 16, .rank = net.rank(), .ranks = ranks}}, plan};
        for (int step = 0; step < 100; ++step) {
            const double now = trainer.step().loss;
            if (net.rank() == 0) loss = now;
        }
    });
    if (!(loss < 2.0)) throw std::logic_error("nothing was learnt: the loss is " + std::to_string(loss));
    all.loss = loss;
    return all;
}

figures run(std::string_view name, int ranks, const std::string& folder) {
    if (name == "doubling") return doubling(ranks);
    if (name == "ring") return ring(ranks);
    if (name == "small") return small(ranks);
    if (name == "idle") return idle(ranks);
    if (name == "training") return training(ranks, folder);
    throw std::invalid_argument("no such case: " + std::string(name));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: bench_simulation_scale doubling|ring|small|idle|training RANKS [FOLDER]\n");
        return 2;
    }
    try {
        const figures all = run(argv[1], std::atoi(argv[2]), argc > 3 ? argv[3] : "/usr/share/datasets/fashion-mnist");
        std::printf(
            "{\"seconds\": %.3f, \"messages\": %llu, \"messages_per_second\": %.0f, \"peak_gib\": %.3f, "
            "\"kib_per_rank\": %.2f, \"virtual_seconds\": %.6f, \"loss\": %.4f}\n",
            all.seconds, static_cast<unsigned long long>(all.messages), static_cast<double>(all.messages) / all.seconds,
            peak_gib(), all.kib_per_rank, all.virtual_seconds, all.loss);
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "bench_simulation_scale: %s\n", problem.what());
        return 1;
    }
}
