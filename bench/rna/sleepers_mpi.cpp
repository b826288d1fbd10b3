// RNA among ranks that sleep for their gradients, in real time, beside a plain Monte Carlo of it: gradients per second.
// `bench_rna_sleepers_mpi threads ROUNDS` runs 8 threads, and `mpirun -np 8 bench_rna_sleepers_mpi mpi ROUNDS`
// processes. Prints JSON.
#include "waits.hpp"

#include "shared/expected.hpp"

#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/rill.hpp>
#include <rill/straggler.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/mpi.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr rna_bench::task task{};

/// Gradients are -1, and a step of rate 1 adds up what counts.
template <class Net>
void measure(Net& net, std::uint64_t rounds) {
    using namespace rill::straggler;
    rill::group workers{net, rill::topology::recursive_doubling{}};
    std::vector<double> model(1);
    const std::vector<double> gradient{-1};
    const rill::train::descent add{rill::train::sgd{}, rill::train::constant_rate{1}};
    rill::partial_all_reduce replica{workers, two_choices{2}, bounded{64}, plain_sum{}, add, model};
    rill::random_sequence draw(rill::random_key{7}.derive(net.rank()));
    rill::barrier(workers);
    const rill::time_point begin = net.now();
    while (const auto held = replica.pull(model)) {
        if (held->version >= rounds) {
            replica.end();
            continue;
        }
        const double ms = task.draw(draw, net.rank(), net.size());
        net.sleep_until(net.now() + rill::nanoseconds(static_cast<std::int64_t>(ms * 1e6)));
        replica.push(gradient, *held);
    }
    const double seconds = (net.now() - begin).seconds();
    std::vector<double> counted(1);
    while (const auto fate = replica.fate()) counted[0] += fate->what == rill::push_fate::outcome::counted;
    rill::all_reduce(workers, counted, counted);
    bench::require(model[0] == counted[0], "the model");
    if (net.rank() != 0) return;
    const auto plain = rna_bench::play(task, net.size(), 2, false, 80'000, 1);
    std::printf("{\"gradients\": %.6g, \"plain_gradients\": %.6g, \"of_model\": %.6g}\n", counted[0] / seconds,
                plain.gradients, counted[0] / seconds / plain.gradients);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string where = count == 3 ? arguments[1] : "";
    const std::uint64_t rounds = count == 3 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    if ((where != "threads" && where != "mpi") || rounds == 0) {
        std::fprintf(stderr, "usage: bench_rna_sleepers_mpi threads|mpi ROUNDS\n");
        return 2;
    }
    try {
        if (where == "threads") {
            rill::in_process::run(8, [&](auto& net) { measure(net, rounds); });
        } else {
            const rill::mpi::environment library(rill::mpi::thread_level::multiple);
            rill::mpi::run([&](auto& net) { measure(net, rounds); });
        }
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_rna_sleepers_mpi: %s\n", failed.what());
        return 1;
    }
}
