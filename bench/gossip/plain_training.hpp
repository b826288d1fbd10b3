// The same trainings as a sequential program: the models of all ranks lie side by side, nothing is sent, and matchings
// and masks come from the standard library.
#pragma once

#include "job.hpp"
#include "judge.hpp"
#include "plain_matching.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gossip_bench::plain {

using models = std::vector<std::vector<float>>;

/// All models after their gradients have been computed. A step returns the values that a rank has sent and received.
struct state {
    std::uint64_t step;
    float rate;
    models& x;
    models& gradients;
    std::mt19937_64& random;

    std::size_t dimension() const { return x[0].size(); }
    void descend() {
        for (std::size_t i = 0; i < x.size(); ++i)
            for (std::size_t k = 0; k < dimension(); ++k) x[i][k] -= rate * gradients[i][k];
    }
    std::vector<std::size_t> shuffled() {
        std::vector<std::size_t> order(x.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        return order;
    }
};

inline double psgd(state& at) {
    for (std::size_t k = 0; k < at.dimension(); ++k) {
        float sum = 0;
        for (const auto& each : at.gradients) sum += each[k];
        for (auto& each : at.x) each[k] -= at.rate * sum / ranks;
    }
    return 4.0 * static_cast<double>(at.dimension()) * (ranks - 1) / ranks;
}

/// Each model goes to a mean of itself, with the weight `own`, and its two neighbours in a ring.
inline double ring(models& x, float own = 1.0F / 3) {
    const models before = x;
    const float other = (1 - own) / 2;
    for (std::size_t i = 0; i < ranks; ++i)
        for (std::size_t k = 0; k < x[i].size(); ++k)
            x[i][k] = own * before[i][k] + other * (before[(i + ranks - 1) % ranks][k] + before[(i + 1) % ranks][k]);
    return 4.0 * static_cast<double>(x[0].size());
}

/// Pairs average one of `every` coordinates.
inline double average(state& at, const std::vector<int>& partners, double every) {
    std::bernoulli_distribution chosen(1 / every);
    double values = 0;
    for (std::size_t k = 0; k < at.dimension(); ++k) {
        if (!chosen(at.random)) continue;
        values += 2;
        for (std::size_t i = 0; i < ranks; ++i) {
            const auto other = static_cast<std::size_t>(partners[i]);
            if (other < i) at.x[i][k] = at.x[other][k] = (at.x[i][k] + at.x[other][k]) / 2;
        }
    }
    return values;
}
inline double pairs(state& at, double every) {
    const std::vector<std::size_t> order = at.shuffled();
    std::vector<int> partners(ranks);
    for (std::size_t p = 0; p < ranks; ++p) partners[order[p]] = static_cast<int>(order[p ^ 1U]);
    return average(at, partners, every);
}

/// Each rank of even number averages its model with that of a rank of odd number, one pair after the other: while the
/// gradients are computed, which are those of the models before.
inline double ask_others(state& at) {
    std::uniform_int_distribution<std::size_t> half(0, ranks / 2 - 1);
    for (std::size_t asking = 0; asking < ranks; asking += 2) {
        auto &own = at.x[asking], &other = at.x[2 * half(at.random) + 1];
        for (std::size_t k = 0; k < own.size(); ++k) own[k] = other[k] = (own[k] + other[k]) / 2;
    }
    return 2.0 * static_cast<double>(at.dimension());
}

/// Models, gradients and rate of the step before.
struct last_step {
    models x{}, gradients{};
    float rate = 0;
};

/// D² with weights of 1/2, 1/4, 1/4. The last gradients have the rate of their own step, or the newest one.
inline double d_squared(state& at, last_step& last, bool newest_rate) {
    last_step next{at.x, at.gradients, at.rate};
    const float rate = newest_rate ? at.rate : last.rate;
    at.descend();
    for (std::size_t i = 0; i < ranks && at.step > 0; ++i)
        for (std::size_t k = 0; k < at.dimension(); ++k)
            at.x[i][k] += next.x[i][k] - last.x[i][k] + rate * last.gradients[i][k];
    last = std::move(next);
    return ring(at.x, 0.5F);
}

/// The largest entries of each gradient and of what has been left out before.
inline double top_k(state& at, models& left, double every) {
    const auto kept = static_cast<std::size_t>(std::ceil(static_cast<double>(at.dimension()) / every));
    std::vector<float> sum(at.dimension());
    for (std::size_t i = 0; i < ranks; ++i) {
        std::vector<std::size_t> order(at.dimension());
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::size_t k = 0; k < sum.size(); ++k) left[i][k] += at.rate * at.gradients[i][k];
        std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                         [&](auto a, auto b) { return std::abs(left[i][a]) > std::abs(left[i][b]); });
        for (std::size_t e = 0; e < kept; ++e) {
            sum[order[e]] += left[i][order[e]] / ranks;
            left[i][order[e]] = 0;
        }
    }
    for (auto& each : at.x)
        for (std::size_t k = 0; k < sum.size(); ++k) each[k] -= sum[k];
    return 4.0 * static_cast<double>(kept) * (ranks - 1);
}

/// Every `every` steps the mean of half of the models, at random, becomes the next model of all.
inline double fed_avg(state& at, std::uint64_t every) {
    at.descend();
    if ((at.step + 1) % every != 0) return 0;
    const std::vector<std::size_t> order = at.shuffled();
    std::vector<float> mean(at.dimension());
    for (std::size_t i = 0; i < ranks / 2; ++i)
        for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += at.x[order[i]][k] / (ranks / 2);
    for (auto& each : at.x) each = mean;
    return static_cast<double>(at.dimension());
}

template <class Step>
std::vector<milestone> train(job& of, Step&& step_of_all) {
    judge judged(of);
    std::mt19937_64 random(of.seed);
    models x(ranks, of.first_model()), gradients = x;
    std::vector<own_batches> images;
    for (std::size_t rank = 0; rank < ranks; ++rank) images.push_back(of.images_of(rank));
    double values = 0;
    for (std::uint64_t step = 0; step < of.steps; ++step) {
        for (std::size_t rank = 0; rank < ranks; ++rank)
            of.model.gradient(x[rank], images[rank].next(), gradients[rank]);
        state at{step, static_cast<float>(of.rate().rate(step)), x, gradients, random};
        values += step_of_all(at);
        if (!of.is_judged(step + 1)) continue;
        for (const auto& each : x) judged.see(step + 1, each, values * sizeof(float), 0);
    }
    return judged.milestones();
}

inline std::vector<milestone> run(job& of, const std::string& system, const matrix& speeds) {
    const auto after_step = [&](auto mix) {
        return train(of, [&](state& at) {
            at.descend();
            return mix(at);
        });
    };
    if (system == "saps" || system == "saps_10") {
        bandwidth_matching matching(speeds, 3e6, 5, true, static_cast<unsigned>(of.seed));
        return after_step([&](state& at) { return average(at, matching.next(), system == "saps" ? 100 : 10); });
    }
    if (system == "none") return after_step([](state&) { return 0.0; });
    if (system == "psgd") return train(of, psgd);
    if (system == "d_psgd_after") return after_step([](state& at) { return ring(at.x); });
    const auto before_step = [&](auto mix) {
        return train(of, [&](state& at) {
            const double values = mix(at);
            at.descend();
            return values;
        });
    };
    if (system == "ad_psgd") return before_step(ask_others);
    if (system == "d_squared" || system == "d_squared_newest_rate") {
        last_step last;
        return train(of, [&](state& at) { return d_squared(at, last, system != "d_squared"); });
    }
    if (system == "saps_random") return after_step([](state& at) { return pairs(at, 100); });
    if (system == "fed_avg") return train(of, [](state& at) { return fed_avg(at, epoch); });
    if (system == "top_k") {
        models left(ranks, std::vector<float>(of.model.dimension()));
        return train(of, [&](state& at) { return top_k(at, left, 1000); });
    }
    if (system == "d_psgd") return before_step([](state& at) { return ring(at.x); });
    throw std::runtime_error("no plain system: " + system);
}

}  // namespace gossip_bench::plain
