// Entries that a compressor leaves out are lost unless a residual keeps them. Four ranks minimise the mean of
// ||w - target||^2 / 2, each with its own target, and send the largest hundredth of their gradients' entries.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

constexpr std::size_t dimension = 1000;
constexpr int ranks = 4;

/// In a hundredth of the coordinates the ranks' targets are large and opposite, and the minimum is 0. In all others the
/// target is `i % 10` on all ranks.
float target(int rank, std::size_t i) {
    if (i % 100 == 0) return rank % 2 == 0 ? 100.0F : -100.0F;
    return static_cast<float>(i % 10);
}

/// The distance from the minimum after `steps` steps, relative to the distance at the start.
template <class Compressor>
double distance_after(int steps, const Compressor& compressor) {
    double distance = 0;
    rill::in_process::run(ranks, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        auto codec = compressor.bind(dimension);  // this rank's codec; holds the residual
        std::vector<float> w(dimension), gradient(dimension), mean(dimension);
        for (int step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < dimension; ++i) gradient[i] = w[i] - target(net.rank(), i);
            rill::all_reduce(workers, gradient, mean, codec, rill::aggregate::mean{});
            for (std::size_t i = 0; i < dimension; ++i) w[i] -= 0.003F * mean[i];
        }
        if (net.rank() != 0) return;
        double left = 0, first = 0;
        for (std::size_t i = 0; i < dimension; ++i) {
            left += std::pow(static_cast<double>(w[i]) - static_cast<double>(i % 10), 2);
            first += std::pow(static_cast<double>(i % 10), 2);
        }
        distance = std::sqrt(left / first);
    });
    return distance;
}

int main() {
    const rill::compress::top_k hundredth{.density = 0.01};
    std::printf("steps   top_k alone   with error_feedback\n");
    for (const int steps : {100, 300, 1000})
        std::printf("%5d   %11.2f   %19.2f\n", steps, distance_after(steps, hundredth),
                    distance_after(steps, rill::compress::error_feedback{hundredth}));
}
