// Convergence after Figures 8 to 13: gradient descent with real gradients, in a simulated network under the models that
// `timing.cpp` has fitted. `bench_coded_training PROBLEM WORKERS STRAGGLERS STEPS POINTS [FOLDER]` prints, for each
// scheme, the seconds of each step and what the figure shows of it as JSON; STRAGGLERS are those of each parent in the
// tree. PROBLEM: logistic (Figures 8 and 9), linear, of 6,500 parameters (10 and 11) or large, of 5,000 (12), network
// (13).
#include "cached_problem.hpp"
#include "gradient_cache.hpp"
#include "images.hpp"
#include "problem.hpp"
#include "protocols.hpp"
#include "tuned_rate.hpp"

#include <rill/core/segment.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/system/master_worker.hpp>
#include <rill/system/psgd.hpp>
#include <rill/train/coded_bsp.hpp>
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
using coded_bench::problem;
using coded_bench::scheme;
using coded_bench::step_size;

struct outcome {
    std::vector<double> seconds{};  ///< of all steps so far, without the pauses between them
    std::vector<double> shown{};    ///< what the figure shows of each step
    std::vector<double> model{};
};

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
                                     coded_bench::cached_problem(gradients, computing),
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
            if (net.rank() == 0) result.shown.push_back(gradients.of().shown(before, trainer.parameters(), step + 1));
            if (trainer.step_number() == count) trainer.end();
        }
        if (net.rank() == 0) result.model.assign(trainer.parameters().begin(), trainer.parameters().end());
    });
    std::partial_sum(result.seconds.begin(), result.seconds.end(), result.seconds.begin());
    return result;
}

/// Worker i of n has a shard of its own, times n: the mean of the workers is the gradient of all.
std::vector<rill::data_share> shard(const gradient_cache& gradients, int worker, int workers) {
    const rill::segment rows =
        rill::split(gradients.of().points, static_cast<std::size_t>(workers), static_cast<std::size_t>(worker));
    return {{rows.begin, rows.end, static_cast<double>(workers)}};
}

/// UMW and SGD: a star, which waits for all workers or for some.
outcome gather(const cluster& of, scheme s, const step_size& rate, std::size_t count, gradient_cache& gradients) {
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
outcome coded(const cluster& of, scheme s, const Code& code, const step_size& rate, std::size_t count,
              gradient_cache& gradients) {
    const plain::tree shape = of.gathering(s);
    const rill::topology::regular_tree tree{.width = shape.width, .depth = shape.depth};
    const rill::coded_allocation allocation(tree, code, gradients.of().points);
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

outcome around_a_ring(const cluster& of, const step_size& rate, std::size_t count, gradient_cache& gradients) {
    const int ranks = of.workers();
    return descend(
        of, ranks, count, gradients, rill::systems::psgd(rill::train::sgd{}, rate),
        [&](rill::rank_t rank) { return shard(gradients, rank, ranks); },
        [&](rill::rank_t) { return of.load(scheme::ring); });
}

outcome run(const cluster& of, scheme s, const step_size& rate, std::size_t steps, gradient_cache& gradients) {
    if (s == scheme::ring) return around_a_ring(of, rate, steps, gradients);
    if (s == scheme::star || s == scheme::sgd) return gather(of, s, rate, steps, gradients);
    const plain::tree shape = of.gathering(s);
    return coded(of, s, coded_bench::cyclic_code(shape.width, shape.stragglers), rate, steps, gradients);
}

/// CodedReduce with groups of workers that hold the same points: the library's choice where s + 1 divides n.
outcome run_groups(const cluster& of, const step_size& rate, std::size_t steps, gradient_cache& gradients) {
    const auto code = rill::gradient_code::repetition_groups{}.bind(of.tree.width, of.tree.stragglers);
    return coded(of, scheme::coded, code, rate, steps, gradients);
}

/// Numbers that are not finite become null: the first relative error is infinite, because descent starts at zero.
void print(const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0) std::printf(", ");
        std::isfinite(values[i]) ? std::printf("%.6g", values[i]) : std::printf("null");
    }
    std::printf("], ");
}

/// The steps that are simulated. The times of later steps are those of these again, one by one; and all schemes that
/// compute the same gradients share one descent without a network.
constexpr std::size_t most_simulated = 20;
/// The steps after which tuning compares losses.
constexpr std::size_t tuning_steps = 100;

/// Descent with the chosen rate, of all or of some workers.
struct long_descent {
    step_size rate;
    std::vector<double> shown{};
    std::vector<double> model{};

    long_descent(const problem& task, std::size_t steps, int workers, int stragglers) {
        const auto all = static_cast<std::size_t>(workers), heard = all - static_cast<std::size_t>(stragglers);
        rate = coded_bench::tuned_rate(task, std::min(steps, tuning_steps), all, heard);
        model = coded_bench::descend_alone(task, rate, steps, all, heard,
                                           [&](const auto& before, const auto& after, std::size_t number) {
                                               shown.push_back(task.shown(before, after, number));
                                           });
    }
};

void train_all(const cluster& of, std::size_t steps, const problem& task) {
    const long_descent exact(task, steps, of.workers(), 0), sgd(task, steps, of.workers(), of.stragglers());
    const std::size_t simulated = std::min(steps, most_simulated);
    std::vector<double> umw;
    const auto tell = [&](const char* scheme_name, const long_descent& whole, auto&& descend) {
        gradient_cache gradients(task);
        outcome result = descend(gradients);
        const bool is_first = umw.empty();
        if (is_first) umw = result.model;
        while (result.seconds.size() < steps)
            result.seconds.push_back(result.seconds[result.seconds.size() - simulated] + result.seconds[simulated - 1]);
        std::printf("%s\"%s\": {", is_first ? "{" : ", ", scheme_name);
        print("seconds", result.seconds);
        print(task.shown_name, simulated < steps ? whole.shown : result.shown);
        if (task.accuracy) std::printf("\"accuracy\": %.4f, ", task.accuracy(whole.model));
        const double apart = coded_bench::square_apart(result.model, umw) / coded_bench::square_of(umw);
        std::printf("\"c1\": %g, \"c2\": %g, \"loss\": %.6g, \"distance_to_umw\": %.3g}", whole.rate.c1, whole.rate.c2,
                    task.loss(whole.model), std::sqrt(apart));
        std::fflush(stdout);
    };
    for (const scheme each : coded_bench::schemes) {
        const long_descent& whole = each == scheme::sgd ? sgd : exact;
        tell(name(each), whole,
             [&](gradient_cache& gradients) { return run(of, each, whole.rate, simulated, gradients); });
    }
    if (of.tree.width % (of.tree.stragglers + 1) == 0)
        tell("groups", exact,
             [&](gradient_cache& gradients) { return run_groups(of, exact.rate, simulated, gradients); });
    std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6 || argc > 7) {
        std::fprintf(
            stderr,
            "usage: bench_coded_training logistic|linear|large|network 84|156 STRAGGLERS STEPS POINTS [FOLDER]\n");
        return 2;
    }
    try {
        const std::string task = argv[1], folder = argc == 7 ? argv[6] : "/usr/share/datasets/fashion-mnist";
        cluster of{.tree = {.width = 4, .depth = 3}, .points = std::atof(argv[5]), .models = {}};
        if (std::string(argv[2]) == "156")
            of.tree = {.width = 12, .depth = 2};
        else if (std::string(argv[2]) != "84")
            throw std::invalid_argument("84 or 156 workers");
        of.tree.stragglers = std::atoi(argv[3]);
        const auto steps = static_cast<std::size_t>(std::atoi(argv[4]));
        const auto points = static_cast<std::size_t>(of.points);
        if (task == "logistic") {
            const coded_bench::sample data = coded_bench::images(folder, points, points);
            of.models = coded_bench::fitted;
            train_all(of, steps, coded_bench::logistic_problem(data));
        } else if (task == "linear" || task == "large") {
            of.entries = task == "large" ? 5000 : 6500;
            of.models = coded_bench::fitted_for(of.entries);
            train_all(of, steps, coded_bench::linear_problem(points, of.entries));
        } else if (task == "network") {
            const problem network = coded_bench::network_problem(folder, points);
            of.entries = network.dimension / 2;  // floats
            // The time of all 49,920 points, also where fewer are trained on.
            const double each = 5e-5 * 49'920 / of.points;
            of.models = {.shift = each, .tail = each, .gradient = 0.05};
            train_all(of, steps, network);
        } else {
            throw std::invalid_argument("logistic, linear, large or network");
        }
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "bench_coded_training: %s\n", failure.what());
        return 1;
    }
}
