#pragma once

#include "problem.hpp"

#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace coded_bench {

/// c1 / (t + c2), or the paper's rate of its neural network where c2 is 0: 0.02, times 0.7 from step 1300 on, times 0.7
/// again from step 2100 on.
struct step_size {
    double c1 = 0;
    double c2 = 0;

    static constexpr const char* name = "step_size";

    constexpr double rate(std::uint64_t step) const {
        if (c2 > 0) return c1 / (static_cast<double>(step) + c2);
        return 0.02 * (step < 1300 ? 1 : (step < 2100 ? 0.7 : 0.49));
    }
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("c1", c1);
        visit("c2", c2);
    }
    friend constexpr bool operator==(const step_size&, const step_size&) = default;
};

/// Descent without a network, in each step of which `heard` of `workers` workers, drawn at random, are heard. Calls
/// `visit(before, after, number)` after each step. Returns the model.
template <class Visit>
std::vector<double> descend_alone(const problem& of, const step_size& rate, std::size_t steps, std::size_t workers,
                                  std::size_t heard, Visit&& visit) {
    std::vector<double> model(of.dimension), before, slopes(of.dimension), sum(of.dimension);
    of.initialise(model);
    std::vector<std::size_t> order(workers);
    std::iota(order.begin(), order.end(), std::size_t{0});
    rill::random_sequence random(rill::random_key{7});
    for (std::size_t step = 0; step < steps; ++step) {
        std::fill(sum.begin(), sum.end(), 0.0);
        std::size_t points = 0;
        const auto add = [&](rill::segment rows) {
            of.gradient(model, rows.begin, rows.end, slopes);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += slopes[i];
            points += rows.size();
        };
        if (heard == workers) {
            add({0, of.points});
        } else {
            for (std::size_t i = 0; i < heard; ++i) {
                std::swap(order[i], order[i + random.below(workers - i)]);
                add(rill::split(of.points, workers, order[i]));
            }
        }
        before = model;
        const double by = rate.rate(step) / static_cast<double>(points);
        for (std::size_t i = 0; i < model.size(); ++i) model[i] -= by * sum[i];
        if (!std::isfinite(square_of(model))) break;
        visit(before, model, step + 1);
    }
    return model;
}

/// The rate with the lowest loss after `steps`, of those that begin with one of `of.first_rates` and have c2 = 100 or
/// 1,000.
inline step_size tuned_rate(const problem& of, std::size_t steps, std::size_t workers, std::size_t heard) {
    step_size best{};
    double least = std::numeric_limits<double>::infinity();
    for (const double first : of.first_rates)
        for (const double c2 : {100.0, 1000.0}) {
            const step_size each{.c1 = first * c2, .c2 = c2};
            const double loss = of.loss(descend_alone(of, each, steps, workers, heard, [](auto&&...) {}));
            if (loss < least) {
                least = loss;
                best = each;
            }
        }
    return best;
}

}  // namespace coded_bench
