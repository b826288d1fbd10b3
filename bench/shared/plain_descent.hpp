// Data-parallel training by definition, with which strategies are compared.
#pragma once

#include "expected.hpp"

#include <rill/core/random.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/minibatches.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bench {

/// Parameters before and after.
struct descended {
    std::vector<float> start, end;
};

/// Follows the mean of the parts `part_of_gradient(gradient)` of all ranks' gradients, which are computed one after the
/// other. `plan` has an optimizer and a rate; `order` has the number of ranks.
template <class Model, class Plan, class Part>
descended plain_descent(Model model, const rill::train::dataset& data, rill::train::sampler::options order,
                        const Plan& plan, rill::random_key initial, int steps, Part&& part_of_gradient) {
    std::vector<rill::train::minibatches> batches;
    for (order.rank = 0; order.rank < order.ranks; ++order.rank) batches.emplace_back(data, order);
    auto optimizer = plan.optimizer.template bind<float>(model.dimension());
    std::vector<float> start(model.dimension()), own(start.size()), mean(start.size());
    model.initialise(start, initial);
    std::vector<float> parameters = start;
    for (int step = 0; step < steps; ++step) {
        mean.assign(mean.size(), 0.0F);
        for (auto& each : batches) {
            model.gradient(parameters, each.next(), own);
            part_of_gradient(own);
            for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += own[i] / static_cast<float>(order.ranks);
        }
        optimizer.step(parameters, std::span<const float>(mean), plan.rate.rate(static_cast<std::uint64_t>(step)));
    }
    return {start, parameters};
}

/// Keeps the `count` largest magnitudes.
inline void keep_largest(std::vector<float>& x, std::size_t count) {
    std::vector<float> magnitudes(x);
    for (float& each : magnitudes) each = std::abs(each);
    std::nth_element(magnitudes.begin(), magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1), magnitudes.end(),
                     std::greater<>());
    for (float& each : x)
        if (std::abs(each) < magnitudes[count - 1]) each = 0;
}

/// Allows each coordinate a difference of `part` of the longest way of any coordinate.
inline void require_within(std::span<const float> found, const descended& due, float part, const std::string& what) {
    float longest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) longest = std::max(longest, std::abs(due.end[i] - due.start[i]));
    require(longest > 0, what + ": nothing moves");
    for (std::size_t i = 0; i < found.size(); ++i)
        require(std::abs(found[i] - due.end[i]) <= part * longest, what + ": parameter " + std::to_string(i));
}

/// Equal up to rounding: within a thousandth of the way.
inline void require_near(std::span<const float> found, const descended& due, const std::string& what) {
    double apart = 0, way = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        apart += std::pow(static_cast<double>(found[i]) - static_cast<double>(due.end[i]), 2);
        way += std::pow(static_cast<double>(due.end[i]) - static_cast<double>(due.start[i]), 2);
    }
    require(way > 0 && apart <= 1e-6 * way, what + ": the parameters");
}

}  // namespace bench
