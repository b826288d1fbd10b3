// Sums a vector over processes that are connected by TCP. `tools/launch -n 4 build/release/examples/example_over_tcp`
// starts four. `tcp::run` reads rank and number of ranks from the launcher's variables; without a launcher there is one
// rank.
#include <rill/rill.hpp>
#include <rill/transport/tcp.hpp>

#include <cstdio>
#include <vector>

int main() {
    rill::tcp::run([](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        const std::vector<float> gradient(1 << 20, 1.0F);
        std::vector<float> sum(gradient.size());
        rill::all_reduce(workers, gradient, sum);
        if (net.rank() == 0)
            std::printf("ranks: %d, each coordinate: %g\n", net.size(), static_cast<double>(sum.back()));
    });
}
