// The fastest way to add up gradients depends on the network, the size and the density. rill measures the network once,
// predicts each way, and says why it chooses one.
#include <rill/cost/choose.hpp>
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::uint64_t gigabit = 125'000'000;

/// Adds up gradients of eight ranks on Gigabit Ethernet, where each rank sends one message at a time.
void add_up(std::size_t dimension, double density) {
    const rill::simulated::network ethernet{
        .latency = rill::microseconds(5), .bandwidth = gigabit, .cards = [](rill::rank_t) {
            return rill::network_card::full_duplex(gigabit);
        }};
    rill::simulated::run(8, ethernet, [&](auto& net) {
        const auto best = rill::cost::choose(net, {.dimension = dimension, .density = density});  // measures
        rill::group workers{net, best.topology};

        const auto step = static_cast<std::size_t>(1 / density), first = static_cast<std::size_t>(net.rank()) % step;
        if (best.compress) {
            rill::stream<float> mine(dimension), sum;
            for (std::size_t i = first; i < dimension; i += step) mine.push_back(i, 1.0F);
            rill::all_reduce(workers, mine, sum, rill::aggregate::sum{}, best.codings);
        } else {
            std::vector<float> gradient(dimension);
            for (std::size_t i = first; i < dimension; i += step) gradient[i] = 1.0F;
            rill::all_reduce(workers, gradient, gradient);
        }

        if (net.rank() == 0)
            std::printf("%zu coordinates, density %g:\n  %s\n", dimension, density, best.reason().c_str());
    });
}

}  // namespace

int main() {
    add_up(16, 1);
    add_up(1'000'000, 1);
    add_up(1'000'000, 0.01);
    add_up(1'000'000, 0.5);
}
