// usage: bench_step_step dense|sparse RANKS BATCH TURNS STEPS [TRACE]
//
// Training steps of the demo among threads, BATCH images per rank, in turns with the same steps without any exchange
// (gradient and update only, each rank for itself), as {"step": [...], "alone": [...], "parts": {"compute": ..., ...}}:
// seconds per step of each turn, and seconds of all ranks per step by what they do, from a trace of other steps. TRACE
// is a file for that trace.
#include "../../examples/demo/plans.hpp"
#include "../shared/expected.hpp"
#include "../shared/plain_descent.hpp"

#include <rill/collective/barrier.hpp>
#include <rill/train/idx.hpp>
#include <rill/train/lockstep.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/time_by_name.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/traced.hpp>
#include <rill/transport/write_trace.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace train = rill::train;

/// A plan without its exchange: each rank follows its own gradient.
template <class Plan>
struct alone {
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;
    decltype(Plan::topology) topology{};
    decltype(Plan::optimizer) optimizer{};

    template <class Net, class Descent, class T>
    struct bound : train::lockstep<Net, decltype(Plan::topology)> {
        Descent descent;

        bound(Net& net, const alone& of, Descent own, const rill::group_options& options)
            : bound::lockstep(net, of, options), descent(std::move(own)) {}

        auto& state() { return descent; }
        const auto& state() const { return descent; }

        template <class Compute>
        train::step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number,
                                Compute&& compute) {
            const auto nothing = [&](const rill::contribution&) {
                return rill::receipt{.contributors = this->workers().size()};
            };
            return this->step_with(number, gradient, compute, nothing,
                                   [&] { descent.step(parameters, std::span<const T>(gradient), 0.01); });
        }
    };

    template <std::floating_point T = float, class Net>
    auto bind(Net& net, std::span<const rill::layer> layers, const rill::group_options& options = {}) const {
        auto own = optimizer.template bind<T>(train::dimension_of(layers));
        return bound<Net, decltype(own), T>(net, *this, std::move(own), options);
    }
    friend constexpr bool operator==(const alone&, const alone&) = default;
};

struct setting {
    demo::arguments chosen;
    demo::images data;
    int turns = 0;
    int steps = 1;  ///< of a turn; twice as many are traced
};

template <class Net, class Plan>
auto make_trainer(Net& net, const setting& of, const Plan& plan) {
    const rill::random_key key{of.chosen.seed};
    return train::trainer{
        net, train::perceptron<float>{{784, 512, 10}},
        train::minibatches{of.data.training,
                           {.batch = of.chosen.batch, .rank = net.rank(), .ranks = net.size(), .key = key.derive(1)}},
        plan, train::trainer_options{.initial = key.derive(2), .group = {.seed = of.chosen.seed}}};
}

/// Seconds per step until the last rank is done.
template <class Trainer>
double seconds_per_step(Trainer& trainer, int steps) {
    barrier(trainer.strategy().workers());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) trainer.step();
    barrier(trainer.strategy().workers());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / steps;
}

struct timings {
    std::vector<double> step, alone;
};

template <class Plan>
timings time_steps(const setting& of, const Plan& plan) {
    timings result;
    rill::in_process::run(of.chosen.ranks, [&](auto& net) {
        auto whole = make_trainer(net, of, plan);
        auto own = make_trainer(net, of, alone<Plan>{plan.topology, plan.optimizer});
        for (int turn = -1; turn < of.turns; ++turn) {  // the first one warms up
            const double a = seconds_per_step(whole, of.steps), b = seconds_per_step(own, of.steps);
            if (net.rank() != 0 || turn < 0) continue;
            result.step.push_back(a);
            result.alone.push_back(b);
        }
    });
    return result;
}

template <class Plan>
std::vector<rill::trace_log> trace_steps(const setting& of, const Plan& plan) {
    std::vector<rill::trace_log> logs(static_cast<std::size_t>(of.chosen.ranks));
    rill::in_process::run(of.chosen.ranks, [&](auto& inner) {
        rill::traced net{inner, logs[static_cast<std::size_t>(inner.rank())]};
        auto trainer = make_trainer(net, of, plan);
        for (int i = 0; i < of.steps; ++i) trainer.step();
        barrier(trainer.strategy().workers());
        net.log().clear();
        for (int i = 0; i < 2 * of.steps; ++i) {
            const auto step = net.span("step");
            trainer.step();
        }
    });
    return logs;
}

void print(const char* name, const std::vector<double>& samples) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < samples.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", samples[i]);
    std::printf("], ");
}

/// A step on all ranks, and the same by definition.
template <class Plan>
void check(const setting& of, const Plan& plan) {
    std::vector<std::vector<float>> parameters(static_cast<std::size_t>(of.chosen.ranks));
    rill::in_process::run(of.chosen.ranks, [&](auto& net) {
        auto trainer = make_trainer(net, of, plan);
        trainer.step();
        parameters[static_cast<std::size_t>(net.rank())].assign(trainer.parameters().begin(),
                                                                trainer.parameters().end());
    });
    for (const auto& each : parameters) bench::require_equal(each, parameters[0], "the ranks' parameters");
    const rill::random_key key{of.chosen.seed};
    constexpr bool is_sparse = requires { plan.codec; };
    const auto part_of_gradient = [&](std::vector<float>& own) {
        if (is_sparse)
            bench::keep_largest(own, static_cast<std::size_t>(of.chosen.density * static_cast<double>(own.size())));
    };
    const bench::descended due =
        bench::plain_descent(train::perceptron<float>{{784, 512, 10}}, of.data.training,
                             {.batch = of.chosen.batch, .ranks = of.chosen.ranks, .key = key.derive(1)}, plan,
                             key.derive(2), 1, part_of_gradient);
    if (is_sparse)  // values are rounded to one of the levels beside them
        bench::require_within(parameters[0], due, 1.01F / static_cast<float>((1 << (of.chosen.bits - 1)) - 1),
                              "training");
    else
        bench::require_near(parameters[0], due, "training");
}

template <class Plan>
void measure(const setting& of, const Plan& plan, const char* trace) {
    check(of, plan);
    const timings timed = time_steps(of, plan);
    const std::vector<rill::trace_log> logs = trace_steps(of, plan);
    std::printf("{");
    print("step", timed.step);
    print("alone", timed.alone);
    std::printf("\"parts\": {");
    const char* separator = "";
    for (const rill::named_time& row : rill::time_by_name(logs)) {
        std::printf("%s\"%s\": %.9g", separator, std::string(row.name).c_str(), row.time.seconds() / (2 * of.steps));
        separator = ", ";
    }
    std::printf("}}\n");
    if (trace == nullptr) return;
    std::FILE* file = std::fopen(trace, "w");
    if (file == nullptr) throw std::runtime_error(std::string("cannot write ") + trace);
    rill::write_trace(file, logs);
    std::fclose(file);
}

demo::images read_images(const std::string& directory) {
    const std::string prefix = directory + "/train";
    return {.training = train::read_idx_dataset(prefix + "-images-idx3-ubyte.gz", prefix + "-labels-idx1-ubyte.gz", 10),
            .test = {}};
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 6) throw std::invalid_argument("usage: bench_step_step dense|sparse RANKS BATCH TURNS STEPS [TRACE]");
    setting of;
    of.chosen.ranks = std::atoi(argv[2]);
    of.data = read_images(of.chosen.data);
    of.chosen.batch = static_cast<std::size_t>(std::atoi(argv[3]));
    of.turns = std::atoi(argv[4]);
    of.steps = std::atoi(argv[5]);
    const char* trace = argc > 6 ? argv[6] : nullptr;
    if (std::string(argv[1]) == "dense")
        measure(of, demo::dense_strategy(of.chosen, of.data), trace);
    else
        measure(of, demo::sparse_strategy(of.chosen, of.data), trace);
} catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
}
