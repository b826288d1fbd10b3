// Gradient descent whose steps need not wait for slow workers: the time that each policy saves, and what it gives up.
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int workers_in_all = 8;
constexpr std::size_t parameters = 100;

/// The root computes nothing. A worker takes 10 ms for a gradient and, one time in ten, 100.
rill::duration computing_time(rill::rank_t rank, std::uint64_t gradient, double) {
    if (rank == 0) return {};
    rill::random_sequence draw(rill::random_key{1}.derive(rank, gradient));
    return rill::milliseconds(draw.below(10) == 0 ? 100 : 10);
}

/// The minimum of the loss on a worker's data; the minimum over all workers' data is 3.5.
double target(rill::rank_t rank, std::size_t i) {
    return static_cast<double>((static_cast<std::size_t>(rank) + i) % workers_in_all);
}

template <class... Policies>
void descend(const char* name, const Policies&... policies) {
    rill::simulated::run(workers_in_all + 1, {.computing = computing_time}, [&](auto& net) {
        rill::group workers{net, rill::topology::star{}};
        rill::rounds steps{workers, rill::topology::star{}, policies...};
        std::vector<double> model(parameters), gradient(parameters), update(parameters);
        int contributions = 0, late = 0;
        while (steps.next(model)) {
            rill::compute(net, 1);
            for (std::size_t i = 0; i < parameters; ++i) gradient[i] = model[i] - target(net.rank(), i);
            const rill::round_receipt done =
                steps.reduce(gradient, update, rill::aggregate::mean{}, {.weight = steps.is_root() ? 0.0 : 1.0});
            if (!steps.is_root()) continue;
            contributions += done.contributors;
            for (const rill::contributor& each : done.in) late += each.age > 0 ? 1 : 0;
            for (std::size_t i = 0; i < parameters; ++i) model[i] -= 0.1 * update[i];
            if (steps.number() < 100) continue;
            double worst = 0;
            for (const double x : model) worst = std::fmax(worst, std::fabs(x - 3.5));
            std::printf("%-24s %6.1f ms a step, %4.1f gradients in it, %4.1f %% of them late; off by %.2f\n", name,
                        1000 * (net.now() - rill::time_point{}).seconds() / 100, contributions / 100.0,
                        100.0 * late / contributions, worst);
            steps.end();
        }
    });
}

int main() {
    using namespace rill::straggler;
    descend("wait_all", wait_all{});
    descend("tolerate{1}", tolerate{1});
    descend("fastest{5}", fastest{5});
    descend("until{15 ms}", until{.after = rill::milliseconds(15)});
    descend("until{15 ms}, unbounded", until{.after = rill::milliseconds(15)}, unbounded{});
    descend("fastest{5}, bounded{3}", fastest{5}, bounded{3});
}
