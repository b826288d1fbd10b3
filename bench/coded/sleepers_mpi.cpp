// Real time: steps of coded gradient descent in which some ranks sleep, beside steps in which none does, and beside
// UMW, which waits for them. 12 workers: as a (12,1)-regular tree with 3 sleepers, or as a (3,2)-regular one with a
// sleeper among the children of each parent. Prints medians as JSON.
#include "cached_problem.hpp"
#include "gradient_cache.hpp"
#include "problem.hpp"

#include <rill/collective/barrier.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/system/coded_reduce.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/train/partial_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/mpi.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// The computing time of a step, and how much longer it takes on a rank that sleeps.
constexpr rill::duration computing = rill::milliseconds(40);
constexpr rill::duration asleep = rill::milliseconds(200);

/// The sleepers are drawn anew for each step, which all ranks begin awake (`stepwise`), or every ten steps, which
/// follow each other at once, so that a rank may sleep through several (`running`).
enum class pacing { stepwise, running };

constexpr rill::train::constant_rate rate{1};

/// Of a gradient from that of all points, relative: what rounding and decoding leave.
constexpr double most_apart = 1e-9;

constexpr std::size_t points = 600, columns = 400;

/// Points whose label depends on their side of a plane.
rill::train::dataset random_points() {
    const rill::counter_rng random(rill::random_key{7});
    rill::train::dataset data{.rows = points,
                              .columns = columns,
                              .classes = 2,
                              .features = rill::aligned_vector<float>(points * columns),
                              .labels = std::vector<std::int32_t>(points)};
    for (std::size_t i = 0; i < data.features.size(); ++i) data.features[i] = random.uniform(i) - 0.5F;
    for (std::size_t r = 0; r < points; ++r) data.labels[r] = data.row(r)[0] + data.row(r)[1] > 0 ? 1 : 0;
    return data;
}

struct problem {
    rill::topology::regular_tree tree;
    int stragglers;
    pacing pace;
    std::size_t steps;
    int turns;

    /// Whether a rank sleeps in a step: `stragglers` children of each parent do.
    bool sleeps(std::uint64_t step, rill::rank_t rank) const {
        if (pace == pacing::running) step /= 10;
        const rill::rank_t parent = tree.parent(tree.size(), rank);
        std::vector<int> children(static_cast<std::size_t>(tree.width));
        for (int i = 0; i < tree.width; ++i) children[static_cast<std::size_t>(i)] = i;
        rill::random_sequence random(rill::random_key{11}.derive(step, static_cast<unsigned>(parent)));
        for (std::size_t left = children.size(); left > 1; --left)
            std::swap(children[left - 1], children[random.below(left)]);
        const int own = (rank - 1) % tree.width;
        return std::find(children.begin(), children.begin() + stragglers, own) != children.begin() + stragglers;
    }
};

struct outcome {
    std::vector<double> seconds{};  ///< per step, until the root has the gradient
    double distance = 0;            ///< the largest relative difference from the full gradient
};

/// The difference of a gradient from the full one, relative to the full one.
double distance(const std::vector<double>& found, const std::vector<double>& exact) {
    double apart = 0, whole = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        apart += (found[i] - exact[i]) * (found[i] - exact[i]);
        whole += exact[i] * exact[i];
    }
    return std::sqrt(apart / whole);
}

/// Gradient descent at rate 1; `shares` are this rank's.
template <class Net, class Strategy>
outcome descend(Net& net, const Strategy& strategy, const problem& of, bool with_sleepers,
                std::vector<rill::data_share> shares) {
    const rill::train::dataset data = random_points();
    const coded_bench::problem regression = coded_bench::logistic_problem(data);
    coded_bench::gradient_cache gradients(regression);
    std::function<std::uint64_t()> number;
    const auto compute = [&] {
        const bool sleeps = with_sleepers && of.sleeps(number(), net.rank());
        net.sleep_until(net.now() + computing + (sleeps ? asleep : rill::duration{}));
    };
    rill::train::trainer trainer{net, coded_bench::cached_problem(gradients, compute),
                                 coded_bench::own_shares{std::move(shares)}, strategy};
    number = [&] { return trainer.strategy().position(); };
    outcome result;
    std::vector<double> moved(columns + 1), exact(moved.size());
    for (;;) {
        if (of.pace == pacing::stepwise) rill::barrier(trainer.strategy().workers());
        moved.assign(trainer.parameters().begin(), trainer.parameters().end());
        std::fill(exact.begin(), exact.end(), 0.0);
        if (net.rank() == 0) gradients.add(moved, {0, points, 1.0}, exact);
        const rill::train::step_record record = trainer.step();
        if (!record) return result;
        if (net.rank() != 0) continue;
        result.seconds.push_back(record.elapsed.seconds());
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= trainer.parameters()[i];
        result.distance = std::max(result.distance, distance(moved, exact));
        if (result.seconds.size() == of.steps) trainer.end();
    }
}

template <class Net>
outcome coded(Net& net, const problem& of, bool with_sleepers) {
    const auto strategy = rill::systems::coded_reduce<double>(
        {.width = of.tree.width, .depth = of.tree.depth, .stragglers = of.stragglers}, rill::train::sgd{}, rate);
    const rill::coded_allocation allocation(strategy.topology, strategy.code, points);
    const auto& own = allocation.shares_of(net.rank());
    return descend(net, strategy, of, with_sleepers, {own.begin(), own.end()});
}

/// Without a code: each worker has its own part of the points, and the root waits for all.
template <class Net>
outcome uncoded(Net& net, const problem& of) {
    std::vector<rill::data_share> shares;
    const int workers = net.size() - 1;
    if (net.rank() > 0) {
        const rill::segment rows =
            rill::split(points, static_cast<std::size_t>(workers), static_cast<std::size_t>(net.rank() - 1));
        shares.push_back({rows.begin, rows.end, static_cast<double>(workers)});
    }
    const rill::train::partial_bsp strategy{of.tree, rill::straggler::wait_all{}, rill::train::sgd{}, rate};
    return descend(net, strategy, of, true, std::move(shares));
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void append(outcome& all, const outcome& more) {
    all.seconds.insert(all.seconds.end(), more.seconds.begin(), more.seconds.end());
    all.distance = std::max(all.distance, more.distance);
}

/// Alternates steps with and without sleepers, because other programs may disturb the machine for a while.
template <class Net>
void measure(Net& net, const problem& of) {
    outcome awake, some;
    for (int turn = 0; turn < of.turns; ++turn) {
        append(awake, coded(net, of, false));
        append(some, coded(net, of, true));
    }
    const outcome all = uncoded(net, of);
    if (net.rank() != 0) return;
    const double apart = std::max({awake.distance, some.distance, all.distance});
    if (!(apart <= most_apart)) throw std::runtime_error("a gradient is " + std::to_string(apart) + " apart");
    std::printf(
        "{\"awake\": %.6f, \"coded\": %.6f, \"uncoded\": %.6f, \"coded_mean\": %.6f, \"uncoded_mean\": %.6f, "
        "\"ratio\": %.4f, \"uncoded_ratio\": %.4f, \"distance\": %.3g}\n",
        median(awake.seconds), median(some.seconds), median(all.seconds), mean(some.seconds), mean(all.seconds),
        median(some.seconds) / median(awake.seconds), median(all.seconds) / median(awake.seconds), apart);
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string_view, problem> problems{
        {"star",
         {.tree = {.width = 12, .depth = 1}, .stragglers = 3, .pace = pacing::stepwise, .steps = 0, .turns = 0}},
        {"tree", {.tree = {.width = 3, .depth = 2}, .stragglers = 1, .pace = pacing::stepwise, .steps = 0, .turns = 0}},
    };
    const auto chosen = argc == 6 ? problems.find(argv[2]) : problems.end();
    if (chosen == problems.end()) {
        std::fprintf(stderr, "usage: %s in_process|mpi star|tree stepwise|running STEPS TURNS\n", argv[0]);
        return 2;
    }
    problem of = chosen->second;
    if (std::string_view(argv[3]) == "running") of.pace = pacing::running;
    of.steps = static_cast<std::size_t>(std::atoi(argv[4]));
    of.turns = std::atoi(argv[5]);
    try {
        if (std::string_view(argv[1]) == "mpi") {
            const rill::mpi::environment library;
            rill::mpi::run([&](auto& net) { measure(net, of); });
        } else {
            rill::in_process::run(of.tree.size(), [&](auto& net) { measure(net, of); });
        }
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "bench_coded_sleepers_mpi: %s\n", failure.what());
        return 1;
    }
}
