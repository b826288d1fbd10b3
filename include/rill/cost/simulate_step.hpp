#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/cost/step_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// The mean of many steps, in seconds, and its standard error.
struct sampled_time {
    double mean = 0;
    double error = 0;

    friend bool operator==(const sampled_time&, const sampled_time&) = default;
};

/// How many steps are drawn, and from which random numbers. Plans with the same seed meet the same stragglers.
struct sampling {
    int steps = 400;
    std::uint64_t seed = 1;
};

namespace detail {

inline double drawn_compute(const step_model& model, double load, std::uint64_t seed, int step, std::uint64_t worker) {
    const std::uint64_t bits = mix64(seed, static_cast<std::uint64_t>(step), worker);
    const double uniform = static_cast<double>((bits >> 11U) + 1) * 0x1p-53;
    return load * model.points * (model.least_per_point - model.tail_per_point * std::log(uniform));
}

/// Returns when a parent has taken the first `waits` of `count` gradients that were sent at the times `sent`. Sorts
/// `sent`.
inline double taken(const step_model& model, double* sent, int count, int waits) {
    std::sort(sent, sent + count);
    double busy = 0;
    for (int i = 0; i < waits; ++i) busy = std::max(busy, sent[i] + model.latency) + model.message;
    return busy;
}

template <class OneStep>
sampled_time mean_of(sampling how, OneStep&& one_step) {
    RILL_EXPECTS(how.steps > 1, "cost: at least two steps make a mean with an error");
    double sum = 0, squares = 0;
    for (int step = 0; step < how.steps; ++step) {
        const double time = one_step(step);
        sum += time;
        squares += time * time;
    }
    const double mean = sum / how.steps;
    const double variance = std::max(0.0, squares / how.steps - mean * mean) * how.steps / (how.steps - 1);
    return {mean, std::sqrt(variance / how.steps)};
}

}  // namespace detail

/// Simulates steps of a gather: draws each worker's computing time and follows the gradients up to the master.
/// With `sends_model` it follows the model down to the workers first.
///
/// An inner node sends when it has its own gradient and those of the children that it waits for.
///
/// Cost: O(steps · workers · log width). Determinism: on one machine, a function of the arguments.
inline sampled_time simulate_step(const step_model& model, const gather_plan& plan, sampling how = {}) {
    plan.require_children();
    const auto workers = static_cast<std::size_t>(plan.workers());
    const auto width = static_cast<std::size_t>(plan.width);
    std::vector<double> sent(workers + 1);  // when each rank of the tree sends; for the master: the time of the step
    std::vector<double> begins(workers + 1, 0.0);  // when each rank has the model
    if (model.sends_model)
        for (std::size_t rank = 1; rank <= workers; ++rank) {
            const std::size_t parent = (rank - 1) / width, place = rank - parent * width;  // 1 is its first child
            begins[rank] = begins[parent] + static_cast<double>(place) * model.message + model.latency;
        }
    const double to_children = model.sends_model ? plan.width * model.message : 0;
    const std::size_t inner = (workers - 1) / width + 1;
    return detail::mean_of(how, [&](int step) {
        for (std::size_t rank = 1; rank <= workers; ++rank)
            sent[rank] = begins[rank] + detail::drawn_compute(model, plan.load, how.seed, step, rank);
        sent[0] = 0;
        for (std::size_t rank = inner; rank-- > 0;)
            sent[rank] = std::max({sent[rank], begins[rank] + to_children,
                                   detail::taken(model, sent.data() + rank * width + 1, plan.width, plan.waits_for())});
        return sent[0];
    });
}

/// Simulates steps of a ring under the model of `expected_ring_time`.
inline sampled_time simulate_ring_step(const step_model& model, int workers, sampling how = {}) {
    return detail::mean_of(how, [&](int step) {
        double slowest = 0;
        for (int worker = 1; worker <= workers; ++worker)
            slowest = std::max(slowest, detail::drawn_compute(model, 1.0 / workers, how.seed, step,
                                                              static_cast<std::uint64_t>(worker)));
        return slowest + 2.0 * (workers - 1) * (model.message / workers + model.latency);
    });
}

}}}  // namespace rill::RILL_ABI::cost
