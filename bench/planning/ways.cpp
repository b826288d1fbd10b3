// Times every way of the planner's table on one network: the whole library runs, ranks in a simulated network, each on
// a core of its own whose time is this processor's. Prints the seconds of each as JSON.
#include "../../examples/plan/measure_exchange.hpp"
#include "../../examples/plan/network.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: %s RANKS BYTES_PER_SECOND LATENCY_SECONDS PARAMETERS DENSITY\n", argv[0]);
        return 2;
    }
    try {
        const auto network = plan::network_of(std::atof(argv[3]), std::atof(argv[2]));
        const auto gradients =
            plan::random_gradients(std::atoi(argv[1]), static_cast<std::size_t>(std::atoll(argv[4])));
        const char* separator = "{";
        plan::for_each_way([&](const auto& shape, const plan::compressor& how) {
            constexpr int repetitions = 3;
            const double seconds =
                plan::measure_exchange(shape, how, std::atof(argv[5]), gradients, network, repetitions);
            std::printf("%s\"%s, %s\": %.9f", separator, shape.name, how.name, seconds);
            separator = ", ";
        });
        std::printf("}\n");
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}
