// Rounds cost latency, bytes cost bandwidth: small vectors need few rounds, large ones few bytes. The receipt gives
// both, so the cost on a network can be predicted without that network.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

/// A network in which each rank sends one message at a time and receives one at a time.
struct network {
    double microseconds_per_round;
    double bytes_per_microsecond;
};

/// Predicts the microseconds of one all-reduce of `size` floats among eight ranks, from the busiest rank's receipt.
template <class Topology>
double predict(Topology topology, std::size_t size, const network& net) {
    double predicted = 0;
    rill::in_process::run(8, [&](auto& rank) {
        rill::group workers{rank, topology};
        std::vector<float> gradient(size, 1.0F);
        const rill::receipt done = rill::all_reduce(workers, gradient, gradient);  // in place
        std::array busiest{static_cast<std::int64_t>(std::max(done.wire.bytes_sent, done.wire.bytes_received))};
        rill::all_reduce(workers, busiest, busiest, rill::aggregate::max{});
        if (rank.rank() == 0)
            predicted =
                done.rounds * net.microseconds_per_round + static_cast<double>(busiest[0]) / net.bytes_per_microsecond;
    });
    return predicted;
}

template <class Topology>
void row(Topology topology) {
    const network ethernet{.microseconds_per_round = 50, .bytes_per_microsecond = 125};
    std::printf("%-20s", Topology::name);
    for (const std::size_t size : {16U, 4'096U, 262'144U}) std::printf(" %10.0f", predict(topology, size, ethernet));
    std::printf("\n");
}

int main() {
    std::printf("8 ranks, 50 us, 1 Gbit/s: microseconds of\n%-20s %10d %10d %10d\n", "floats", 16, 4096, 262144);
    row(rill::topology::recursive_doubling{});
    row(rill::topology::halving_doubling{});
    row(rill::topology::split_allgather{});
    row(rill::topology::ring{});
    row(rill::topology::tree{.arity = 2});
    row(rill::topology::star{});
}
