// Every rank contributes a vector; every rank gets the sum.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <cstdio>
#include <vector>

int main() {
    rill::in_process::run(4, [](auto& net) {  // four ranks, each a thread
        rill::group workers{net, rill::topology::ring{}};

        const std::vector<float> mine(8, static_cast<float>(net.rank() + 1));
        std::vector<float> sum(mine.size());
        const rill::receipt done = rill::all_reduce(workers, mine, sum);

        if (net.rank() != 0) return;
        std::printf("sum:");
        for (const float value : sum) std::printf(" %g", static_cast<double>(value));
        std::printf("\nranks in it: %d, rounds: %d\n", done.contributors, done.rounds);
        std::printf("rank 0 sent %llu messages, %llu bytes\n", static_cast<unsigned long long>(done.wire.messages_sent),
                    static_cast<unsigned long long>(done.wire.bytes_sent));
    });
}
