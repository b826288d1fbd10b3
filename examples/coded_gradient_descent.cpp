// Gradient descent that does not wait for stragglers and still gets exact gradients: CodedReduce. Each of 12 workers
// computes on a part of the data that overlaps with other workers' parts, so that a parent can do without any one of
// its three children. It runs in virtual time, so that the output is always the same.
#include <rill/rill.hpp>
#include <rill/system/coded_reduce.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/coded_batch.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/transport/simulated.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

constexpr std::size_t points = 900, columns = 20;

/// Random points, classified by the side of a plane on which they lie.
rill::train::dataset random_points() {
    rill::random_sequence random(rill::random_key{1});
    rill::train::dataset data{.rows = points, .columns = columns, .classes = 2, .features = {}, .labels = {}};
    for (std::size_t i = 0; i < points * columns; ++i) data.features.push_back(random.uniform() - 0.5F);
    for (std::size_t r = 0; r < points; ++r) data.labels.push_back(data.row(r)[0] > data.row(r)[1] ? 1 : 0);
    return data;
}

/// A computation takes 20 us per point; one in twenty takes 200 ms more, whatever the load.
rill::duration computing(rill::rank_t rank, std::uint64_t number, double load) {
    const bool straggles = rill::mix64(static_cast<unsigned>(rank), number) % 20 == 0;
    return rill::microseconds(static_cast<int>(20 * load)) + rill::milliseconds(straggles ? 200 : 0);
}

void train(int stragglers) {
    const rill::train::dataset data = random_points();
    const auto plan = rill::systems::coded_reduce<double>({.width = 3, .depth = 2, .stragglers = stragglers}, points);
    std::printf("%d of 3 children may be missing, each worker has %zu of %zu points\n", stragglers,
                plan.allocation.load_of(1), points);

    rill::simulated::run(plan.tree.size(), {.computing = computing}, [&](auto& net) {
        rill::group workers{net, rill::topology::star{}};
        rill::coded_reduce steps{workers, plan.tree, plan.code};

        const rill::train::coded_batch own(plan.allocation, net.rank());  // its points, each with its coefficient
        rill::train::logistic_regression<double> objective(columns);
        std::vector<double> model(columns + 1), coded(model.size()), gradient(model.size());
        const rill::time_point start = net.now();
        while (steps.next(model)) {
            if (!steps.is_root()) {
                objective.gradient(model, own.of(data), coded);
                net.compute(static_cast<double>(own.load()));
            }
            const rill::round_receipt done = steps.reduce(coded, gradient);
            if (!steps.is_root()) continue;
            for (std::size_t i = 0; i < model.size(); ++i) model[i] -= 20 * gradient[i];
            if (steps.number() % 20 == 0)
                std::printf("  step %d: %d of 12 workers in it, %.0f ms so far, accuracy %.2f\n",
                            static_cast<int>(steps.number()), done.contributors, (net.now() - start).seconds() * 1e3,
                            rill::train::accuracy(objective, model, data));
            if (steps.number() == 60) steps.end();
        }
    });
}

int main() {
    train(0);
    train(1);
}
