// Gradient descent that does not wait for stragglers and still gets exact gradients: CodedReduce. Each of 12 workers
// computes on a part of the data that overlaps with other workers' parts, so that a parent can do without any one of
// its three children. It runs in virtual time, so that the output is always the same.
#include <rill/protocol/coded_allocation.hpp>
#include <rill/rill.hpp>
#include <rill/system/coded_reduce.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/coded_batch.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

constexpr std::size_t points = 900, coordinates = 20;

/// Random points, classified by the side of a plane on which they lie.
rill::train::dataset random_points() {
    rill::random_sequence random(rill::random_key{1});
    rill::train::dataset data{.rows = points, .columns = coordinates, .classes = 2, .features = {}, .labels = {}};
    for (std::size_t i = 0; i < points * coordinates; ++i) data.features.push_back(random.uniform() - 0.5F);
    for (std::size_t r = 0; r < points; ++r) data.labels.push_back(data.row(r)[0] > data.row(r)[1] ? 1 : 0);
    return data;
}

/// A computation takes 20 us per point; one in twenty takes 200 ms more, whatever the load.
rill::duration computing(rill::rank_t rank, std::uint64_t number, double load) {
    const bool straggles = rill::mix64(static_cast<unsigned>(rank), number) % 20 == 0;
    return rill::microseconds(static_cast<int>(20 * load)) + rill::milliseconds(straggles ? 200 : 0);
}

/// Logistic regression from zero that takes as long as the rows of its batch ask.
class timed_regression : public rill::train::logistic_regression<double> {
  public:
    explicit timed_regression(rill::simulated::endpoint& net) : logistic_regression(coordinates), net_(&net) {}

    void initialise(std::span<double> parameters, rill::random_key) const {
        std::fill(parameters.begin(), parameters.end(), 0.0);
    }
    double gradient(std::span<const double> parameters, const rill::train::batch& samples, std::span<double> output) {
        const double loss = logistic_regression::gradient(parameters, samples, output);
        net_->compute(static_cast<double>(samples.rows.size()));
        return loss;
    }

  private:
    rill::simulated::endpoint* net_;
};

void train(int stragglers) {
    const rill::train::dataset data = random_points();
    const auto system = rill::systems::coded_reduce<double>({.width = 3, .depth = 2, .stragglers = stragglers},
                                                            rill::train::sgd{}, rill::train::constant_rate{20});
    const rill::coded_allocation allocation(system.topology, system.code, points);
    std::printf("%d of 3 children may be missing, each worker has %zu of %zu points\n", stragglers,
                allocation.load_of(1), points);

    rill::simulated::run(system.topology.size(), {.computing = computing}, [&](auto& net) {
        rill::train::trainer trainer{net, timed_regression(net),
                                     rill::train::coded_batch(data, allocation, net.rank()),  // rows with coefficients
                                     system};
        const rill::time_point start = net.now();
        while (const rill::train::step_record record = trainer.step()) {
            if (trainer.step_number() == 60) trainer.end();  // on all ranks, as soon as the root says so
            if (net.rank() != 0 || trainer.step_number() % 20 != 0) continue;
            std::printf("  step %d: %d of 12 workers in it, %.0f ms so far, accuracy %.2f\n",
                        static_cast<int>(trainer.step_number()), record.exchange.contributors,
                        (net.now() - start).seconds() * 1e3,
                        rill::train::accuracy(trainer.model(), trainer.parameters(), data));
        }
    });
}

int main() {
    train(0);
    train(1);
}
