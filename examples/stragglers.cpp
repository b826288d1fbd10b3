// Gradient descent whose steps need not wait for slow workers: the time that each policy saves, and what it gives up.
#include <rill/rill.hpp>
#include <rill/train/partial_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

constexpr int workers_in_all = 8;
constexpr std::size_t parameters = 100;

/// A worker takes 10 ms for a gradient and, one time in ten, 100.
rill::duration computing_time(rill::rank_t rank, std::uint64_t gradient, double) {
    rill::random_sequence draw(rill::random_key{1}.derive(rank, gradient));
    return rill::milliseconds(draw.below(10) == 0 ? 100 : 10);
}

/// A worker's data is its rank alone.
struct own_rank {
    rill::rank_t rank;

    rill::rank_t next() const { return rank; }
    void save(auto&, std::string_view) const {}
    void restore(const auto&, std::string_view) {}
};

/// Half the squared distance from the minimum on a worker's data; the minimum over all workers' data is 3.5.
struct distance {
    using scalar = double;
    using batch = rill::rank_t;

    rill::simulated::endpoint* net;
    rill::layer all{"all", {0, parameters}};

    std::size_t dimension() const { return parameters; }
    std::span<const rill::layer> layers() const { return {&all, 1}; }
    void initialise(std::span<double> model, rill::random_key) const { std::fill(model.begin(), model.end(), 0.0); }

    double loss(std::span<const double> model, batch rank) const {
        double squares = 0;
        for (std::size_t i = 0; i < parameters; ++i) squares += std::pow(model[i] - target(rank, i), 2);
        return squares / 2;
    }
    double gradient(std::span<const double> model, batch rank, std::span<double> output) const {
        rill::compute(*net, 1);
        for (std::size_t i = 0; i < parameters; ++i) output[i] = model[i] - target(rank, i);
        return loss(model, rank);
    }
    static double target(rill::rank_t rank, std::size_t i) {
        return static_cast<double>((static_cast<std::size_t>(rank) + i) % workers_in_all);
    }
};

template <class Completion, class Staleness = rill::straggler::fresh>
void descend(const char* name, const Completion& completion, const Staleness& staleness = {}) {
    const rill::train::partial_bsp strategy{rill::topology::star{}, completion, rill::train::sgd{},
                                            rill::train::constant_rate{0.1}, staleness};
    rill::simulated::run(workers_in_all + 1, {.computing = computing_time}, [&](auto& net) {
        rill::train::trainer trainer{net, distance{&net}, own_rank{net.rank()}, strategy};
        int contributions = 0, late = 0;
        while (trainer.step()) {
            if (net.rank() != 0) continue;
            const rill::round_receipt& done = trainer.strategy().latest();
            contributions += done.contributors;
            for (const rill::contributor& each : done.in) late += each.age > 0 ? 1 : 0;
            if (trainer.step_number() < 100) continue;
            double worst = 0;
            for (const double x : trainer.parameters()) worst = std::fmax(worst, std::fabs(x - 3.5));
            std::printf("%-24s %6.1f ms a step, %4.1f gradients in it, %4.1f %% of them late; off by %.2f\n", name,
                        1000 * (net.now() - rill::time_point{}).seconds() / 100, contributions / 100.0,
                        100.0 * late / contributions, worst);
            trainer.end();
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
