// One rank of an elastic team that trains the demo's perceptron.
#pragma once

#include "arguments.hpp"
#include "images.hpp"
#include "plans.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/protocol/update_bytes.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/shared_state.hpp>
#include <rill/train/shares.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace demo {

/// A member before a step.
struct elastic_moment {
    std::uint64_t step = 0;
    const rill::view& crew;
    std::span<const float> parameters;
};

/// Trains with dense gradients, with `chosen.batch` images for each of `chosen.ranks` in a step, whoever the members
/// are. Calls `before(moment)` before each step. Returns the final parameters.
template <class Net, class Before>
std::vector<float> train_elastic(Net& net, const arguments& chosen, const images& data,
                                 const rill::elastic_options& options, Before&& before) {
    namespace train = rill::train;
    const std::uint64_t steps = steps_of(chosen, data);
    const train::warmup_cosine schedule = rate(0.1, steps);
    const rill::random_key key{chosen.seed};

    train::perceptron<float> model{{784, 512, 10}};
    std::vector<float> parameters(model.dimension()), gradient(model.dimension()), mean(model.dimension());
    model.initialise(parameters, key.derive(2));
    auto optimizer = train::sgd{.momentum = 0.9}.bind<float>(model.dimension());
    std::array<std::uint64_t, 1> taken{};  // steps
    const auto move = [&](std::span<const float> along) {
        optimizer.step(parameters, along, train::rate_at(schedule, taken[0]++));
    };
    train::shared_state state{
        [&] {
            return rill::update_bytes(rill::stream_view<float, std::uint32_t>({0, mean.size()}, mean));
        },
        [&](rill::byte_view update) {
            rill::frame_scratch<float, std::uint32_t> room;
            move(rill::update_in(update, room).values());
        },
        parameters, optimizer, taken};

    train::shares rows{{.rows = data.training.rows,
                        .batch = chosen.batch * static_cast<std::size_t>(chosen.ranks),
                        .rank = net.rank(),
                        .key = key.derive(1)}};
    std::vector<double> sums;
    rill::elastic team{net, rill::topology::backup_tree{}, options};
    for (;;) {
        const rill::view& crew = team.settle(state);  // a newcomer gets the state of the others here
        if (team.step() >= steps) break;
        before(elastic_moment{team.step(), crew, parameters});
        const std::span own = share_of(rows, crew, team.step());
        sums.assign(own.size(), 1);  // a member gives the sum of its rows' gradients
        model.gradient(parameters, {data.training, own, sums}, gradient);
        const bool done = team.attempt([&](auto& workers) {
            rill::all_reduce(workers, gradient, mean, rill::aggregate::mean{},
                             {.weight = static_cast<double>(own.size())});
        });
        if (done) move(mean);  // on all members, or on none
    }
    team.finish();
    return parameters;
}

}  // namespace demo
