// Times four collectives: `mpi`, started by mpirun over the mpi transport, or `simulated RANKS`, in virtual time on a
// network of the same links. Prints the seconds per call of each sample on the slowest rank as JSON.
#include <rill/aggregate/max.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/core/segment.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/mpi.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr const char* usage = "usage: bench_simulation_collectives_mpi mpi|simulated RANKS ENTRIES SAMPLES\n";

/// The emulated cluster: 200 Mbit/s in each direction, and the latency of a small message there.
const rill::simulated::network cluster{
    .latency = rill::microseconds(100),
    .bandwidth = 25'000'000,
    .cards = [](rill::rank_t) { return rill::network_card::full_duplex(25'000'000); },
};

template <class Net>
class stopwatch {
  public:
    stopwatch(Net& net, int samples) : net_(net), workers_(net, rill::topology::ring{}), samples_(samples) {}

    /// Prints the time of `call()` on rank 0.
    template <class Call>
    void print(const char* name, Call call) {
        if (net_.rank() == 0) std::printf("%s\"%s\": [", is_first_ ? "{" : "], ", name);
        is_first_ = false;
        for (int sample = -1; sample < samples_; ++sample) {  // the first is warm-up
            rill::barrier(workers_);
            const rill::time_point start = net_.now();
            call();
            std::array<std::int64_t, 1> took{(net_.now() - start).ns};
            rill::all_reduce(workers_, took, took, rill::aggregate::max{});
            if (net_.rank() == 0 && sample >= 0)
                std::printf("%s%.9f", sample == 0 ? "" : ", ", static_cast<double>(took[0]) * 1e-9);
        }
    }
    void end() const {
        if (net_.rank() == 0) std::printf("]}\n");
    }

  private:
    Net& net_;
    rill::group<Net, rill::topology::ring> workers_;
    int samples_;
    bool is_first_ = true;
};

void require_all(std::span<const float> found, float due, const char* what) {
    if (!std::all_of(found.begin(), found.end(), [=](float each) { return each == due; }))
        throw std::runtime_error(std::string("wrong result: ") + what);
}

template <class Net>
void time_all(Net& net, std::size_t entries, int samples) {
    rill::group ring{net, rill::topology::ring{}};
    rill::group tree{net, rill::topology::tree{}};
    const auto part_of = [&](int rank) {
        return rill::split(entries, static_cast<std::size_t>(net.size()), static_cast<std::size_t>(rank));
    };
    std::vector<float> input(entries, static_cast<float>(net.rank() + 1)), output(entries),
        part(part_of(net.rank()).size());
    const auto sum = static_cast<float>(net.size() * (net.size() + 1) / 2);
    stopwatch watch(net, samples);
    watch.print("all_reduce", [&] { rill::all_reduce(ring, input, output); });
    require_all(output, sum, "all_reduce");
    watch.print("reduce_scatter", [&] { rill::reduce_scatter(ring, input, part); });
    require_all(part, sum, "reduce_scatter");
    part.assign(part.size(), static_cast<float>(net.rank()));
    watch.print("all_gather", [&] { rill::all_gather(ring, part, output); });
    for (int rank = 0; rank < net.size(); ++rank) {
        const rill::segment at = part_of(rank);
        require_all(std::span(output).subspan(at.begin, at.size()), static_cast<float>(rank), "all_gather");
    }
    watch.print("broadcast", [&] { rill::broadcast(tree, input, 0); });
    require_all(input, 1, "broadcast");
    watch.end();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs(usage, stderr);
        return 2;
    }
    const int ranks = std::atoi(argv[2]), samples = std::atoi(argv[4]);
    const auto entries = static_cast<std::size_t>(std::atoll(argv[3]));
    try {
        if (std::string_view(argv[1]) == "simulated") {
            rill::simulated::run(ranks, cluster, [&](auto& net) { time_all(net, entries, samples); });
            return 0;
        }
        const rill::mpi::environment library;
        rill::mpi::run([&](rill::mpi::endpoint& net) { time_all(net, entries, samples); });
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "bench_simulation_collectives_mpi: %s\n", problem.what());
        return 1;
    }
}
