// Times one collective of rill among threads. Prints the seconds per call of each sample on the slowest rank as JSON.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include "../shared/expected.hpp"
#include "workload.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <string_view>

namespace {

using namespace foundation;
using endpoint = rill::in_process::endpoint;

struct job {
    std::string_view what;
    int ranks = 1;
    std::size_t size = 0;
    repetition times{};
};

/// Calls `prepare()`, then times `step()`, on all ranks at once. Row r of `seconds` is rank r's. The first sample is
/// warm-up and is dropped.
template <class Group, class Prepare, class Step>
void time_steps(Group& workers, const job& todo, std::vector<double>& seconds, Prepare prepare, Step step) {
    for (int sample = -1; sample < todo.times.samples; ++sample) {
        prepare();
        rill::barrier(workers);
        const rill::time_point start = workers.net().now();
        for (int call = 0; call < todo.times.batch; ++call) step();
        const double taken = (workers.net().now() - start).seconds() / todo.times.batch;
        if (sample >= 0) seconds[static_cast<std::size_t>(sample)] = taken;
    }
}

template <class Group>
void time_out_of_place(Group& workers, const job& todo, std::vector<double>& seconds) {
    std::vector<float> input(todo.size), output(todo.size);
    fill(input, workers.rank());
    time_steps(
        workers, todo, seconds, [&] { std::fill(output.begin(), output.end(), 0.0F); },
        [&] { rill::all_reduce(workers, input, output); });
    require_sum(output, workers.size());
}

/// One coordinate of 128, uniformly at random, different ones on each rank.
rill::stream<float> sparse_input(std::size_t dimension, int rank) {
    rill::random_sequence random{rill::random_key{2}.derive(rank)};
    std::vector<std::uint32_t> chosen(dimension / 128);
    for (auto& each : chosen) each = static_cast<std::uint32_t>(random.below(dimension));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    rill::stream<float> made(dimension);
    for (const std::uint32_t each : chosen) made.push_back(each, entry(rank, each));
    return made;
}

template <class Group>
void time_sparse(Group& workers, const job& todo, std::vector<double>& seconds) {
    const rill::stream<float> input = sparse_input(todo.size, workers.rank());
    rill::stream<float> output;
    time_steps(
        workers, todo, seconds, [] {}, [&] { rill::all_reduce(workers, input, output); });
    if (output.is_dense()) throw std::runtime_error("the sum should be sparse");
    const auto expected =
        bench::dense_sum(todo.size, workers.size(), [&](int rank) { return sparse_input(todo.size, rank); });
    bench::require_equal(output, expected, "sparse sum");
}

template <class Group>
void time_barrier(Group& workers, const job& todo, std::vector<double>& seconds) {
    time_steps(
        workers, todo, seconds, [] {}, [&] { rill::barrier(workers); });
    static std::atomic<int> entered{0};
    ++entered;
    rill::barrier(workers);
    if (entered != workers.size()) throw std::runtime_error("a rank left the barrier before all had entered it");
}

template <class Shape>
void time_on(endpoint& net, const job& todo, std::vector<double>& seconds) {
    rill::group workers{net, Shape{}};
    if (todo.what == "out_of_place") return time_out_of_place(workers, todo, seconds);
    if (todo.what == "sparse") return time_sparse(workers, todo, seconds);
    if (todo.what == "barrier") return time_barrier(workers, todo, seconds);
    throw std::invalid_argument("no such operation: " + std::string(todo.what));
}

void time_on(std::string_view shape, endpoint& net, const job& todo, std::vector<double>& seconds) {
    namespace topology = rill::topology;
    if (shape == topology::split_allgather::name) return time_on<topology::split_allgather>(net, todo, seconds);
    if (shape == topology::ring::name) return time_on<topology::ring>(net, todo, seconds);
    if (shape == topology::recursive_doubling::name) return time_on<topology::recursive_doubling>(net, todo, seconds);
    throw std::invalid_argument("no such topology: " + std::string(shape));
}

std::vector<double> slowest_rank(const std::vector<std::vector<double>>& seconds) {
    std::vector<double> slowest(seconds.front().size());
    for (const auto& rank : seconds)
        for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
    return slowest;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 7) {
        std::fprintf(stderr, "usage: %s out_of_place|sparse|barrier TOPOLOGY RANKS ENTRIES SAMPLES BATCH\n", argv[0]);
        return 2;
    }
    try {
        const job todo{.what = argv[1],
                       .ranks = std::atoi(argv[3]),
                       .size = static_cast<std::size_t>(std::atoll(argv[4])),
                       .times = {.samples = std::atoi(argv[5]), .batch = std::atoi(argv[6])}};
        std::vector<std::vector<double>> seconds(static_cast<std::size_t>(todo.ranks),
                                                 std::vector<double>(static_cast<std::size_t>(todo.times.samples)));
        rill::in_process::run(todo.ranks, [&](endpoint& net) {
            time_on(argv[2], net, todo, seconds[static_cast<std::size_t>(net.rank())]);
        });
        print_as_json(slowest_rank(seconds));
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
