// Exchanges the gradients of later layers while those of earlier layers are still being computed, as a backward pass
// does. It runs in a simulated network, where sleeps stand for computing; on `in_process` the program is the same.
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <vector>

constexpr std::size_t layers = 4;
using model = std::array<std::vector<float>, layers>;

template <class Net>
void compute(Net& net, std::vector<float>& gradient) {
    net.sleep_until(net.now() + rill::milliseconds(5));
    gradient.assign(500'000, static_cast<float>(net.rank()));
}

template <class Group>
void one_after_the_other(Group& workers, model& gradients) {
    for (std::size_t layer = layers; layer-- > 0;) compute(workers.net(), gradients[layer]);
    for (std::size_t layer = layers; layer-- > 0;)
        rill::all_reduce(workers, gradients[layer], gradients[layer], rill::aggregate::mean{});
}

template <class Group>
void overlapped(Group& workers, model& gradients) {
    std::array<rill::request, layers> exchanges;
    for (std::size_t layer = layers; layer-- > 0;) {
        compute(workers.net(), gradients[layer]);
        exchanges[layer] =  // returns at once; all ranks start in the same order
            rill::start_all_reduce(workers, gradients[layer], gradients[layer], rill::aggregate::mean{});
    }
    for (rill::request& exchange : exchanges) exchange.get();  // in any order; throws what the operation threw
}

template <class Step>
void time(const char* name, Step step) {
    const rill::simulated::network ethernet{.latency = rill::microseconds(50), .bandwidth = 625'000'000};
    const auto report = rill::simulated::run(4, ethernet, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        model gradients;
        step(workers, gradients);
        if (net.rank() == 0) std::printf("%-20s mean %g", name, static_cast<double>(gradients[0][0]));
    });
    std::printf(", %.1f ms\n", report.elapsed.seconds() * 1e3);
}

int main() {
    time("one after the other:", [](auto& workers, model& gradients) { one_after_the_other(workers, gradients); });
    time("overlapped:", [](auto& workers, model& gradients) { overlapped(workers, gradients); });
}
