// Convergence after Figures 8 and 9: logistic regression by gradient descent with real gradients, in a simulated
// network under the models that `timing.cpp` has fitted. `bench_coded_training WORKERS STRAGGLERS STEPS POINTS
// [FOLDER]` prints, for each scheme, the seconds and the relative error of each step as JSON; STRAGGLERS are those of
// each parent in the tree.
#include "gradient_cache.hpp"
#include "images.hpp"
#include "protocols.hpp"

#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/train/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
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

/// Does w -= step * gradient and returns the paper's relative error.
double move(std::vector<double>& model, const std::vector<double>& gradient, double step) {
    double moved = 0, before = 0;
    for (std::size_t i = 0; i < model.size(); ++i) {
        before += model[i] * model[i];
        moved += step * gradient[i] * (step * gradient[i]);
        model[i] -= step * gradient[i];
    }
    return moved / before;
}

/// Between two steps all ranks become idle: in the paper's models a late rank is not late in the next step.
constexpr rill::duration pause = rill::seconds(1000);

/// The root's part of a step: `reduce()` returns the gradient and the share of the points that it covers.
class descent {
  public:
    descent(outcome& into, std::size_t steps) : into_(&into), steps_(steps) {}

    template <class Net, class Steps, class Reduce>
    void step(Net& net, Steps& steps, std::vector<double>& model, Reduce&& reduce) {
        std::vector<double> gradient(model.size());
        const double part = reduce(gradient);
        elapsed_ += (net.now() - begun_).seconds();
        into_->errors.push_back(move(model, gradient, rate.rate(steps.number() - 1) / part));
        into_->seconds.push_back(elapsed_);
        into_->model = model;
        if (into_->seconds.size() == steps_) return steps.end();
        net.sleep_until(net.now() + pause);
        begun_ = net.now();
    }

    void begin(rill::time_point at) { begun_ = at; }

  private:
    outcome* into_;
    std::size_t steps_;
    double elapsed_ = 0;
    rill::time_point begun_{};
};

/// One rank's part of gradient descent. `own(step, model, gradient)` computes a worker's gradient on its `load` points;
/// `reduce(gradient, sum)` returns the share of the points that a step's sum covers.
template <class Net, class Steps, class Own, class Reduce>
void descend(Net& net, Steps& steps, const cluster& of, descent& root, double load, Own&& own, Reduce&& reduce) {
    std::vector<double> model(of.entries), gradient(of.entries);
    net.sleep_until(coded_bench::start);
    root.begin(net.now());
    while (steps.next(model)) {
        if (steps.is_root()) {
            root.step(net, steps, model, [&](std::vector<double>& sum) { return reduce(gradient, sum); });
            continue;
        }
        std::fill(gradient.begin(), gradient.end(), 0.0);
        own(steps.number(), model, gradient);
        net.compute(load);
        reduce(gradient, gradient);
    }
}

/// UMW and SGD: a star, which waits for all workers or for some.
outcome gather(const cluster& of, scheme s, std::size_t count, gradient_cache& gradients) {
    outcome result;
    const int workers_count = of.workers();
    rill::simulated::run(workers_count + 1, coded_bench::network_of(of, 1), [&](auto& net) {
        rill::group workers{net, rill::topology::star{}, coded_bench::patient};
        rill::rounds steps{workers, rill::topology::star{}, rill::straggler::tolerate{of.gathering(s).stragglers}};
        descent root(result, count);
        const auto own = [&](std::uint64_t step, const std::vector<double>& model, std::vector<double>& gradient) {
            const rill::segment rows = rill::train::shard(gradients.data(), net.rank() - 1, workers_count);
            gradients.add(step, model, {rows.begin, rows.end, 1.0}, gradient);
        };
        const auto reduce = [&](const std::vector<double>& gradient, std::vector<double>& sum) {
            const double weight = steps.is_root() ? 0 : 1;
            const auto done = steps.reduce(gradient, sum, rill::aggregate::sum{}, {.weight = weight});
            return static_cast<double>(done.contributors) / workers_count;
        };
        descend(net, steps, of, root, of.load(s), own, reduce);
    });
    return result;
}

/// GC, a tree of depth 1, and CodedReduce.
template <class Code>
outcome coded(const cluster& of, scheme s, const Code& code, std::size_t count, gradient_cache& gradients) {
    outcome result;
    const plain::tree shape = of.gathering(s);
    const rill::topology::regular_tree tree{.width = shape.width, .depth = shape.depth};
    const rill::coded_allocation allocation(tree, code, gradients.data().rows);
    rill::simulated::run(tree.size(), coded_bench::network_of(of, 1), [&](auto& net) {
        rill::group workers{net, rill::topology::star{}, coded_bench::patient};
        rill::coded_reduce steps{workers, tree, code};
        descent root(result, count);
        const auto own = [&](std::uint64_t step, const std::vector<double>& model, std::vector<double>& gradient) {
            for (const rill::data_share& share : allocation.shares_of(net.rank()))
                gradients.add(step, model, share, gradient);
        };
        const auto reduce = [&](const std::vector<double>& gradient, std::vector<double>& sum) {
            steps.reduce(gradient, sum);
            return 1.0;
        };
        const double load = s == scheme::coded ? static_cast<double>(allocation.load_of(net.rank())) : of.load(s);
        descend(net, steps, of, root, load, own, reduce);
    });
    return result;
}

outcome around_a_ring(const cluster& of, std::size_t count, gradient_cache& gradients) {
    outcome result;
    const int ranks = of.workers();
    std::vector<double> slowest(count);
    rill::simulated::run(ranks, coded_bench::network_of(of, 1), [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}, coded_bench::patient};
        std::vector<double> model(of.entries), own(of.entries);
        const rill::segment rows = rill::train::shard(gradients.data(), net.rank(), ranks);
        for (std::size_t step = 0; step < count; ++step) {
            const rill::time_point begun = coded_bench::start + pause * static_cast<std::int64_t>(step);
            net.sleep_until(begun);
            std::fill(own.begin(), own.end(), 0.0);
            gradients.add(step, model, {rows.begin, rows.end, 1.0}, own);
            net.compute(of.load(scheme::ring));
            rill::all_reduce(workers, own, own);
            slowest[step] = std::max(slowest[step], (net.now() - begun).seconds());
            const double error = move(model, own, rate.rate(step));
            if (net.rank() == 0) result.errors.push_back(error);
        }
        if (net.rank() == 0) result.model = model;
    });
    double elapsed = 0;
    for (const double each : slowest) result.seconds.push_back(elapsed += each);
    return result;
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
