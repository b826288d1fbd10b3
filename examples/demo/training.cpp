#include "training.hpp"

#include "progress.hpp"

#include <rill/aggregate/max.hpp>
#include <rill/system/psgd.hpp>
#include <rill/system/sparcml.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace demo {

namespace {

using namespace rill;

std::uint64_t steps_of(const arguments& chosen, const images& data) {
    if (chosen.quick) return 300;
    return chosen.epochs * (data.training.rows / (static_cast<std::size_t>(chosen.ranks) * chosen.batch));
}

train::warmup_cosine rate(double peak, std::uint64_t steps) {
    return {.peak = peak, .warmup = std::min<std::uint64_t>(50, steps / 5), .total = steps};
}

/// Wall-clock seconds, which the simulated transport does not know.
double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What all ranks have sent in their training steps, by the transport's own count.
struct sent {
    std::int64_t total = 0;
    std::int64_t largest = 0;

    void add(const traffic& step) {
        const auto bytes = static_cast<std::int64_t>(step.bytes_sent);
        total += bytes;
        largest = std::max(largest, bytes);
    }
};

/// Each rank classifies its share of the test images; the counts meet in an all-reduce of their own, which is no part
/// of the bytes that are compared.
template <class Trainer>
milestone evaluate(Trainer& trainer, const train::dataset& test, const sent& own) {
    const auto rows = train::shard(test, trainer.workers().rank(), trainer.workers().size());
    std::array<std::int64_t, 2> sums{
        static_cast<std::int64_t>(train::count_correct(trainer.model(), trainer.parameters(), test, rows)), own.total};
    all_reduce(trainer.workers(), sums, sums);
    return {.step = trainer.step_number(),
            .megabytes = static_cast<double>(sums[1]) * 1e-6 / trainer.workers().size(),
            .accuracy = static_cast<double>(sums[0]) / static_cast<double>(test.rows)};
}

/// Trains as one rank, and returns what all have done.
template <class Net, class Plan>
outcome train_rank(Net& net, const arguments& chosen, const images& data, const Plan& plan, progress shown) {
    const random_key key{chosen.seed};
    train::trainer trainer{
        net,
        train::perceptron<float>{{784, 512, 10}},
        train::minibatches{data.training,
                           {.batch = chosen.batch, .rank = net.rank(), .ranks = net.size(), .key = key.derive(1)}},
        plan,
        {.initial = key.derive(2), .group = {.seed = chosen.seed}}};
    const bool is_first = net.rank() == 0;
    outcome result{.steps = steps_of(chosen, data)};
    sent own;
    for (std::uint64_t step = 1, due = 10; step <= result.steps; ++step) {
        const double start = seconds_now();
        const traffic before = net.counted();
        const train::step_record record = trainer.step();
        own.add(net.counted() - before);
        result.seconds += seconds_now() - start;
        if (is_first) shown.step(step, record.loss);
        if (record.skipped()) {
            ++result.skipped;
            if (is_first) shown.note(describe_skip(record));
        }
        if (step != due && step != result.steps) continue;
        due += due / 2;  // evenly on the picture's logarithmic axis
        result.curve.push_back(evaluate(trainer, data.test, own));
        if (is_first) shown.evaluated(step, result.accuracy(), result.curve.back().megabytes);
    }
    std::array<std::int64_t, 1> largest{own.largest};
    all_reduce(trainer.workers(), largest, largest, aggregate::max{});
    result.largest_bytes = static_cast<std::uint64_t>(largest[0]);
    result.total_bytes = result.curve.back().megabytes * 1e6 * net.size();
    result.mean_bytes = result.total_bytes / net.size() / static_cast<double>(result.steps);
    return result;
}

template <class Plan>
outcome train_with(const char* name, const arguments& chosen, const images& data, const Plan& plan) {
    outcome result;
    progress shown(name, steps_of(chosen, data));
    const auto body = [&](auto& net) {
        outcome done = train_rank(net, chosen, data, plan, shown);
        if (net.rank() == 0) result = std::move(done);
    };
    if (chosen.transport == "simulated")
        simulated::run(chosen.ranks, {}, body);
    else
        in_process::run(chosen.ranks, body);
    shown.finish();
    result.name = name;
    return result;
}

}  // namespace

outcome train_dense(const arguments& chosen, const images& data) {
    const auto plan = system::psgd(train::sgd{.momentum = 0.9}, rate(0.1, steps_of(chosen, data)));
    return train_with("dense", chosen, data, plan);
}

/// An entry that waits in the residual is late already: the momentum must look back less far. The rate in the long run,
/// peak / (1 - momentum), is that of the dense run.
outcome train_sparse(const arguments& chosen, const images& data) {
    const auto plan = system::sparcml({.density = chosen.density, .bits = chosen.bits}, train::sgd{.momentum = 0.7},
                                      rate(0.3, steps_of(chosen, data)));
    return train_with("sparse", chosen, data, plan);
}

}  // namespace demo
