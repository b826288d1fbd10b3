#include "forecast.hpp"
#include "network.hpp"
#include "topologies.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plan {

namespace {

using namespace rill;

/// Selects as many coordinates as `top_k`, at random.
stream<float> random_contribution(const arguments& chosen, rank_t rank) {
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    random_sequence random(random_key{chosen.seed}.derive(rank));
    const std::size_t count = entries_sent(chosen);
    for (std::size_t i = 0; i < chosen.model_size; ++i)
        if (random.below(chosen.model_size - i) < count - indices.size()) {
            indices.push_back(static_cast<std::uint32_t>(i));
            values.push_back(random.uniform() - 0.5F);
        }
    stream<float> made;
    made.assign({{0, chosen.model_size}, sparse_view<float, std::uint32_t>{indices, values}});
    return made;
}

template <class Group>
void exchange(Group& workers, const arguments& chosen, const compressor& how, std::vector<float>& dense,
              const stream<float>& sparse) {
    stream<float> result;
    if (how.is_plain())
        all_reduce(workers, dense, dense);
    else if (how.sparse)
        all_reduce(workers, sparse, result, aggregate::sum{}, how.codings);
    else {
        stream<float> whole;
        whole.assign({{0, chosen.model_size}, std::span<const float>(dense)});
        all_reduce(workers, whole, result, aggregate::sum{}, how.codings);
    }
}

template <class Shape>
double simulate_on(const Shape& shape, const arguments& chosen, const compressor& how) {
    constexpr time_point begin{seconds(3600).ns};  // all have made the group by then
    duration elapsed{};
    simulated::run(chosen.ranks, network_of(chosen.latency, chosen.bandwidth), [&](simulated::endpoint& self) {
        group workers{self, shape};
        std::vector<float> dense(how.sparse ? 0 : chosen.model_size, 1.0F);
        const stream<float> sparse = how.sparse ? random_contribution(chosen, self.rank()) : stream<float>{};
        self.sleep_until(begin);
        exchange(workers, chosen, how, dense, sparse);
        elapsed = std::max(elapsed, self.now() - begin);
    });
    return elapsed.seconds();
}

}  // namespace

double simulate(const arguments& chosen, const row& which) {
    double seconds = 0;
    for_each_topology([&](const auto& shape) {
        if (which.topology == shape.name) seconds = simulate_on(shape, chosen, which.how);
    });
    return seconds;
}

}  // namespace plan
