#pragma once

#include "charged.hpp"
#include "compositions.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace plan {

using gradient_table = std::vector<std::vector<float>>;

/// A gradient for each rank, independent of each other, most entries small.
inline gradient_table random_gradients(int ranks, std::size_t size) {
    gradient_table all(static_cast<std::size_t>(ranks), std::vector<float>(size));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const rill::counter_rng random(rill::random_key{1}.derive(rank));
        for (std::size_t i = 0; i < size; ++i) {
            const float x = random.uniform(i) - 0.5F;
            all[rank][i] = x * x * x;
        }
    }
    return all;
}

/// Throws `std::runtime_error` where the update is not the mean of all gradients, of which some entries are compared.
inline void check_mean(const std::vector<float>& update, const gradient_table& gradients) {
    const std::size_t size = update.size();
    for (const std::size_t i : {std::size_t{0}, size / 3, size / 2, size - 1}) {
        double sum = 0;
        for (const std::vector<float>& each : gradients) sum += static_cast<double>(each[i]);
        const double off = static_cast<double>(update[i]) - sum / static_cast<double>(gradients.size());
        if (std::abs(off) > 1e-5) throw std::runtime_error("an exchange gave another result than the mean");
    }
}

/// The shortest of the times that the exchange of these gradients takes in a simulated network, after one to warm up;
/// what ranks compute for it takes as long as on this machine.
template <class Shape>
double measure_exchange(const Shape& shape, const compressor& how, double density, const gradient_table& gradients,
                        const rill::simulated::network& network, int repetitions) {
    std::vector<std::vector<float>> updates(gradients.size());
    std::vector<rill::duration> slowest(static_cast<std::size_t>(repetitions) + 1);
    const auto steps = [&](charged& net, auto&& exchange) {
        for (std::size_t step = 0; step < slowest.size(); ++step) {
            const rill::time_point begin{rill::seconds(3600 * (static_cast<std::int64_t>(step) + 1)).ns};
            net.sleep_until(begin);
            exchange();
            slowest[step] = std::max(slowest[step], net.now() - begin);
        }
    };
    rill::simulated::run(static_cast<int>(gradients.size()), network, [&](rill::simulated::endpoint& self) {
        charged net(self);
        rill::group workers{net, shape};
        const std::vector<float>& gradient = gradients[static_cast<std::size_t>(self.rank())];
        std::vector<float>& update = updates[static_cast<std::size_t>(self.rank())];
        update.resize(gradient.size());
        if (how.is_plain()) {
            steps(net, [&] { rill::all_reduce(workers, gradient, update, rill::aggregate::mean{}); });
            return check_mean(update, gradients);
        }
        with_policy<Shape>(how, density, [&](const auto& policy) {
            auto codec = policy.bind(gradient.size());
            steps(net, [&] { rill::all_reduce(workers, gradient, update, codec, rill::aggregate::mean{}); });
        });
    });
    for (const std::vector<float>& each : updates)
        if (each != updates.front()) throw std::runtime_error("an exchange gave the ranks different results");
    return std::min_element(slowest.begin() + 1, slowest.end())->seconds();
}

}  // namespace plan
