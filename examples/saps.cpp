// SAPS-PSGD among workers in 14 places: each descends by itself, then averages a quarter of its model's entries with
// one other worker, over a fast link. Rank 0 coordinates. Compared with pairs at random.
#include <rill/adapt/boost_matching.hpp>
#include <rill/cost/measure_links.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/rill.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int ranks = 14, last_round = 300;
constexpr std::size_t parameters = 4000;

/// A fifth of the links have 0.2 MB/s, the others 2.5 to 10 MB/s.
rill::network_link link_between(rill::rank_t a, rill::rank_t b) {
    const std::uint64_t far = static_cast<std::uint64_t>((a + b) % 5);
    return {.latency = rill::milliseconds(1), .bandwidth = far == 0 ? 200'000 : 2'500'000 * far};
}

/// The model that is best for this rank's data.
float target(rill::rank_t rank, std::size_t i) {
    return std::sin(static_cast<float>(i)) + 0.1F * static_cast<float>(rank % 3 - 1);
}

/// Prints how far models are from what is best for all at the end, and the virtual time.
template <class Choose>
void train(const char* name, Choose choose) {
    double error = 0, seconds = 0;
    rill::simulated::run(ranks, {.links = link_between}, [&](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::tree{}};
        const auto links = rill::cost::measure_links(workers, {.largest_bytes = 1 << 16});
        const rill::time_point begin = net.now();
        rill::gossip saps{workers, choose(rill::cost::bytes_per_second(links)),
                          rill::coordinated{.rounds = last_round}};
        auto mask = rill::compress::random_mask{.density = 0.25}.bind(parameters);
        std::vector<float> model(parameters);
        while (saps.next()) {
            for (std::size_t i = 0; i < parameters; ++i) model[i] -= 0.02F * (model[i] - target(net.rank(), i));
            saps.mix(model, mask);
        }
        double squares = 0;
        for (std::size_t i = 0; i < parameters; ++i)
            squares += std::pow(static_cast<double>(model[i] - std::sin(static_cast<float>(i))), 2);
        error += std::sqrt(squares / parameters) / ranks;
        if (net.rank() == 0) seconds = (net.now() - begin).seconds();
    });
    std::printf("%-18s %.1f s, a model is %.3f from the best for all\n", name, seconds, error);
}

int main() {
    train("over fast links", [](const std::vector<double>& bytes_per_second) {
        return rill::topology::bandwidth_matching{
            .links = bytes_per_second, .least = 2e6, .matcher = rill::adapt::boost_matching{}};
    });
    train("pairs at random", [](const std::vector<double>&) { return rill::topology::random_matching{}; });
}
