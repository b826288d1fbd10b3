// Runs one function among the processes that `mpirun -np 4` starts, and among threads: the results are equal bit by
// bit. Sums of floats depend on their order, which the topology determines, not the network.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/mpi.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

/// Sums numbers over all ranks; their sum depends on the order.
template <class Net>
std::vector<float> sum_up(Net& net) {
    rill::group workers{net, rill::topology::halving_doubling{}};
    std::vector<float> values(1000);
    rill::random_sequence random(rill::random_key{1}.derive(net.rank()));
    for (float& value : values) value = random.uniform() / 3;
    rill::all_reduce(workers, values, values);
    return values;
}

int main() {
    const rill::mpi::environment mpi;  // MPI_Init, unless somebody has called it
    std::vector<float> by_processes;
    bool is_first = false;
    rill::mpi::run([&](auto& net) {  // on MPI_COMM_WORLD
        by_processes = sum_up(net);
        is_first = net.rank() == 0;
        if (is_first) std::printf("processes: %d\n", net.size());
    });
    if (!is_first) return 0;

    rill::in_process::run(4, [&](auto& net) {
        const std::vector<float> by_threads = sum_up(net);
        if (net.rank() == 0) std::printf("same bits among threads: %s\n", by_threads == by_processes ? "yes" : "no");
    });
    return 0;
}
