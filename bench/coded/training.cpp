// Convergence after Figures 8 and 9: logistic regression by gradient descent with real gradients, in a simulated
// network under the models that `timing.cpp` has fitted. `bench_coded_training WORKERS STRAGGLERS STEPS POINTS
// [FOLDER]` prints, for each scheme, the seconds and the relative error of each step as JSON; STRAGGLERS are those of
// each parent in the tree.
#include "cached_regression.hpp"
#include "gradient_cache.hpp"
#include "images.hpp"
#include "protocols.hpp"

#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/system/master_worker.hpp>
#include <rill/system/psgd.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/coded_bsp.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using coded_bench::cluster;
using coded_bench::gradient_cache;
using coded_bench::scheme;

/// c1 / (t + c2), for all schemes. Of (8, 400), (12, 400), (12, 200), (6, 100), (20, 1000) and (30, 1000) it is the
/// pair with which the loss never rises for long. (12, 200) has the lowest loss after 300 steps, but a higher one than
/// this pair for 50 steps.
constexpr rill::train::inverse_time rate{.c1 = 8, .c2 = 400};

struct outcome {
    std::vector<double> seconds{};  ///< of all steps so far, without the pauses between them
    std::vector<double> errors{};   ///< |w(t) - w(t-1)|^2 / |w(t-1)|^2, the paper's (9)
    std::vector<double> model{};
};

/// The relative error of the paper of a step from `before` to `after`.
double relative_error(std::span<const double> before, std::span<const double> after) {
    double moved = 0, whole = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        moved += (after[i] - before[i]) * (after[i] - before[i]);
        whole += before[i] * before[i];
    }
    return moved / whole;
}

/// Between two steps all ranks become idle: in the paper's models a late rank is not late in the next step.
constexpr rill::duration pause = rill::seconds(1000);

/// Gradient descent on `ranks` ranks: `shares_of(rank)` is what a rank computes on, of which it has `load_of(rank)`. A
/// step lasts until the root has moved or, where replicas are equal, until all ranks have.
template <class Strategy, class Shares, class Load>
outcome descend(const cluster& of, int ranks, std::size_t count, gradient_cache& gradients, const Strategy& strategy,
                Shares&& shares_of, Load&& load_of) {
    outcome result{.seconds = std::vector<double>(count)};
    rill::simulated::run(ranks, coded_bench::network_of(of, 1), [&](auto& net) {
        const auto computing = [&] { net.compute(load_of(net.rank())); };
        rill::train::trainer trainer{net,
                                     coded_bench::cached_regression(gradients, computing),
                                     coded_bench::own_shares{shares_of(net.rank())},
                                     strategy,
                                     {.group = coded_bench::patient}};
        const bool is_timed = Strategy::replicas_equal || net.rank() == 0;
        for (;;) {
            const auto step = static_cast<std::size_t>(trainer.step_number());
            const rill::time_point begun = coded_bench::start + pause * static_cast<std::int64_t>(step);
            if (is_timed) net.sleep_until(begun);
            const std::vector<double> before(trainer.parameters().begin(), trainer.parameters().end());
            if (!trainer.step()) break;
            if (is_timed) result.seconds[step] = std::max(result.seconds[step], (net.now() - begun).seconds());
            if (net.rank() == 0) result.errors.push_back(relative_error(before, trainer.parameters()));
            if (trainer.step_number() == count) trainer.end();
        }
        if (net.rank() == 0) result.model.assign(trainer.parameters().begin(), trainer.parameters().end());
    });
    std::partial_sum(result.seconds.begin(), result.seconds.end(), result.seconds.begin());
    return result;
}

/// Worker i of n has a shard of its own, times n: the mean of the workers is the gradient of all.
std::vector<rill::data_share> shard(const gradient_cache& gradients, int worker, int workers) {
    const rill::segment rows = rill::train::shard(gradients.data(), worker, workers);
    return {{rows.begin, rows.end, static_cast<double>(workers)}};
}

/// UMW and SGD: a star, which waits for all workers or for some.
outcome gather(const cluster& of, scheme s, std::size_t count, gradient_cache& gradients) {
    const int workers = of.workers();
    return descend(
        of, workers + 1, count, gradients,
        rill::systems::sgd_ignoring_slowest(of.gathering(s).stragglers, rill::train::sgd{}, rate),
        [&](rill::rank_t rank) {
            return rank == 0 ? std::vector<rill::data_share>{} : shard(gradients, rank - 1, workers);
        },
        [&](rill::rank_t) { return of.load(s); });
}

/// GC, a tree of depth 1, and CodedReduce.
template <class Code>
outcome coded(const cluster& of, scheme s, const Code& code, std::size_t count, gradient_cache& gradients) {
    const plain::tree shape = of.gathering(s);
    const rill::topology::regular_tree tree{.width = shape.width, .depth = shape.depth};
    const rill::coded_allocation allocation(tree, code, gradients.data().rows);
    return descend(
        of, tree.size(), count, gradients, rill::train::coded_bsp{tree, code, rill::train::sgd{}, rate},
        [&](rill::rank_t rank) {
            const auto& own = allocation.shares_of(rank);
            return std::vector<rill::data_share>(own.begin(), own.end());
        },
        [&](rill::rank_t rank) {
            return s == scheme::coded ? static_cast<double>(allocation.load_of(rank)) : of.load(s);
        });
}

outcome around_a_ring(const cluster& of, std::size_t count, gradient_cache& gradients) {
    const int ranks = of.workers();
    return descend(
        of, ranks, count, gradients, rill::systems::psgd(rill::train::sgd{}, rate),
        [&](rill::rank_t rank) { return shard(gradients, rank, ranks); },
        [&](rill::rank_t) { return of.load(scheme::ring); });
}

outcome run(const cluster& of, scheme s, std::size_t steps, gradient_cache& gradients) {
    if (s == scheme::ring) return around_a_ring(of, steps, gradients);
    if (s == scheme::star || s == scheme::sgd) return gather(of, s, steps, gradients);
    const plain::tree shape = of.gathering(s);
    return coded(of, s, coded_bench::cyclic_code(shape.width, shape.stragglers), steps, gradients);
}

/// CodedReduce with groups of workers that hold the same points: the library's choice where s + 1 divides n.
outcome run_groups(const cluster& of, std::size_t steps, gradient_cache& gradients) {
    const auto code = rill::gradient_code::repetition_groups{}.bind(of.tree.width, of.tree.stragglers);
    return coded(of, scheme::coded, code, steps, gradients);
}

/// The distance of two models relative to the second.
double distance(std::span<const double> a, std::span<const double> b) {
    double apart = 0, whole = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        apart += (a[i] - b[i]) * (a[i] - b[i]);
        whole += b[i] * b[i];
    }
    return std::sqrt(apart / whole);
}

/// The first relative error is infinite, because descent starts at zero.
void print(const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0) std::printf(", ");
        std::isfinite(values[i]) ? std::printf("%.6g", values[i]) : std::printf("null");
    }
    std::printf("], ");
}

void train_all(const cluster& of, std::size_t steps, const std::string& folder) {
    const auto points = static_cast<std::size_t>(of.points);
    const coded_bench::sample data = coded_bench::images(folder, points, points);
    std::vector<double> exact;
    const auto tell = [&](const char* scheme_name, auto&& descend) {
        gradient_cache gradients(data.training);
        const outcome result = descend(gradients);
        const bool is_first = exact.empty();
        if (is_first) exact = result.model;
        std::printf("%s\"%s\": {", is_first ? "{" : ", ", scheme_name);
        print("seconds", result.seconds);
        print("relative_error", result.errors);
        rill::train::logistic_regression<double> model(data.training.columns);
        std::printf("\"loss\": %.6g, \"accuracy\": %.4f, \"distance_to_umw\": %.3g}", gradients.loss(result.model),
                    rill::train::accuracy(model, result.model, data.test), distance(result.model, exact));
        std::fflush(stdout);
    };
    for (const scheme each : coded_bench::schemes)
        tell(name(each), [&](gradient_cache& gradients) { return run(of, each, steps, gradients); });
    tell("groups", [&](gradient_cache& gradients) { return run_groups(of, steps, gradients); });
    std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5 || argc > 6) {
        std::fprintf(stderr, "usage: bench_coded_training 84|156 STRAGGLERS STEPS POINTS [FOLDER]\n");
        return 2;
    }
    try {
        cluster of{.tree = {.width = 4, .depth = 3}, .points = std::atof(argv[4]), .models = coded_bench::fitted};
        if (std::string(argv[1]) == "156")
            of.tree = {.width = 12, .depth = 2};
        else if (std::string(argv[1]) != "84")
            throw std::invalid_argument("84 or 156 workers");
        of.tree.stragglers = std::atoi(argv[2]);
        train_all(of, static_cast<std::size_t>(std::atoi(argv[3])),
                  argc == 6 ? argv[5] : "/usr/share/datasets/fashion-mnist");
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "bench_coded_training: %s\n", failure.what());
        return 1;
    }
}
