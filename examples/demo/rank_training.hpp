// One rank's part of a training run, over any transport.
#pragma once

#include "../shared/progress.hpp"
#include "arguments.hpp"
#include "images.hpp"
#include "outcome.hpp"
#include "plans.hpp"

#include <rill/aggregate/max.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/random.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/trainer.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace demo {

namespace train = rill::train;

/// Wall-clock seconds; the clock of the simulated transport is virtual.
inline double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The bytes sent in training steps, as the transport counts them.
struct sent {
    std::int64_t total = 0;
    std::int64_t largest = 0;

    void add(const rill::traffic& step) {
        const auto bytes = static_cast<std::int64_t>(step.bytes_sent);
        total += bytes;
        largest = std::max(largest, bytes);
    }
};

/// Classifies this rank's share of the test images and adds up the counts of all ranks by an all-reduce, whose bytes
/// are not part of the comparison.
template <class Trainer>
milestone evaluate(Trainer& trainer, const train::dataset& test, const sent& own) {
    auto& workers = trainer.strategy().workers();
    const auto rows = train::shard(test, workers.rank(), workers.size());
    std::array<std::int64_t, 2> sums{
        static_cast<std::int64_t>(train::count_correct(trainer.model(), trainer.parameters(), test, rows)), own.total};
    all_reduce(workers, sums, sums);
    return {.step = trainer.step_number(),
            .megabytes = static_cast<double>(sums[1]) * 1e-6 / workers.size(),
            .accuracy = static_cast<double>(sums[0]) / static_cast<double>(test.rows)};
}

/// A hash of the parameters' bits.
inline std::uint64_t checksum(std::span<const float> parameters) {
    std::uint64_t sum = parameters.size();
    for (const float each : parameters) sum = rill::mix64(sum, std::bit_cast<std::uint32_t>(each));
    return sum;
}

/// Sums up the result over all steps and ranks. Throws where ranks ended with different parameters.
template <class Trainer>
void summarise(Trainer& trainer, const sent& own, outcome& result) {
    result.parameters = checksum(trainer.parameters());
    const auto sum = static_cast<std::int64_t>(result.parameters);
    std::array<std::int64_t, 3> most{own.largest, sum, ~sum};
    auto& workers = trainer.strategy().workers();
    all_reduce(workers, most, most, rill::aggregate::max{});
    if (most[1] != ~most[2]) throw std::logic_error("the ranks ended with different parameters");
    result.largest_bytes = static_cast<std::uint64_t>(most[0]);
    const int ranks = workers.size();
    result.total_bytes = result.curve.back().megabytes * 1e6 * ranks;
    result.mean_bytes = result.total_bytes / ranks / static_cast<double>(result.steps);
}

/// Trains as one rank, and returns the result of all ranks.
template <class Net, class Plan>
outcome train_rank(Net& net, const arguments& chosen, const images& data, const Plan& plan, shared::progress shown) {
    const rill::random_key key{chosen.seed};
    train::trainer trainer{
        net,
        train::perceptron<float>{{784, 512, 10}},
        train::minibatches{data.training,
                           {.batch = chosen.batch, .rank = net.rank(), .ranks = net.size(), .key = key.derive(1)}},
        plan,
        {.initial = key.derive(2), .group = {.seed = chosen.seed}}};
    const bool is_first = net.rank() == 0;
    outcome result{.steps = steps_of(chosen, data)};
    if (is_first && chosen.topology == "auto") shown.note("auto: " + trainer.strategy().choice().reason());
    sent own;
    for (std::uint64_t step = 1, due = 10; step <= result.steps; ++step) {
        const double start = seconds_now();
        const rill::traffic before = net.counted();
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
    summarise(trainer, own, result);
    return result;
}

/// Trains as this process's rank of a job that a launcher has started; `run` is that of the transport.
template <class Run, class Plan>
outcome train_as_one(Run run, const char* name, const arguments& chosen, const images& data, const Plan& plan) {
    outcome result;
    run([&](auto& net) {
        shared::progress shown(name, steps_of(chosen, data), false);  // the launcher forwards lines
        result = train_rank(net, chosen, data, plan, shown);
        if (net.rank() == 0) shown.finish();
    });
    result.name = name;
    return result;
}

}  // namespace demo
