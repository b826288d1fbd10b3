#include <rill/train/server_replica.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <rill/core/error.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/system/stale_synchronous.hpp>
#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/paced.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace rill;
using namespace jobs;

namespace on_servers {

constexpr train::sgd momentum{.momentum = 0.5};
constexpr train::constant_rate small{0.02};

/// A worker's gradients take a time of its own, so that in a simulated network they arrive in one order.
template <class Net, class Plan>
auto make(Net& net, const Plan& plan) {
    const int workers = plan.servers.workers(net.size());
    return train::asynchronous_trainer{
        net, train::paced(net, spoilt_perceptron(net.rank(), {}), {.forward = milliseconds(1 + net.rank())}),
        train::minibatches{data(), {.batch = 8, .rank = net.rank() % workers, .ranks = workers, .key = {2}}}, plan,
        train::trainer_options{.initial = {3}, .group = {.timeout = seconds(20), .seed = 7}}};
}

/// Steps until this worker has computed `last` gradients and returns the final parameters.
template <class Trainer>
std::vector<float> run_to(Trainer& trainer, std::uint64_t last) {
    while (trainer.step())
        if (trainer.step_number() == last) trainer.retire();
    return copy_of_parameters(trainer);
}

/// The final parameters of a run from the files of `from`, if any; its own files go to `to`.
template <class Plan>
std::vector<float> run(const Plan& plan, std::uint64_t last, const scratch_directory* from,
                       const scratch_directory& to) {
    std::vector<float> reached;
    simulated::run(4, {}, [&](auto& net) {
        const std::string file = std::to_string(net.rank());
        auto trainer = make(net, plan);
        if (from != nullptr) trainer.restore(train::checkpoint::load(*from / file.c_str()), "run.");
        const auto own = run_to(trainer, last);
        train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(to / file.c_str());
        if (net.rank() == 0) reached = own;
    });
    return reached;
}

}  // namespace on_servers

using namespace on_servers;

TEST_CASE("server_replica: workers learn, and end with the same parameters; a dedicated server keeps the first ones") {
    for (const bool dedicated : {true, false})
        on_transports(4, [&](auto& net) {
            const auto plan = systems::stale_synchronous(
                {.servers = 2, .dedicated = dedicated, .staleness = dedicated ? 3 : systems::unlimited}, momentum,
                small);
            auto trainer = make(net, plan);
            spoilt_perceptron judge(0, {});
            train::minibatches all{data(), {.batch = data().rows, .rank = 0, .ranks = 1, .key = {2}}};
            const auto batch = all.next();
            const auto first = copy_of_parameters(trainer);
            const auto own = run_to(trainer, 60);
            const int workers = plan.servers.workers(net.size());
            CHECK(trainer.version() == 60 * std::uint64_t(workers));
            CHECK(!trainer.step());
            if (net.rank() >= workers) {
                CHECK(own == first);
                CHECK(trainer.step_number() == 0);
                return;
            }
            CHECK(judge.loss(own, batch) < 0.95 * judge.loss(first, batch));
            CHECK(trainer.step_number() == 60);
            CHECK(trainer.counts() == train::push_counts{.counted = 60});
            const auto newest = trainer.replica().newest();
            CHECK(own == std::vector<float>(newest.begin(), newest.end()));
        });
}

TEST_CASE("server_replica: a trainer goes on where it was saved, bit for bit") {
    for (const bool dedicated : {true, false}) {
        const train::server_replica plan{server_options{.servers = 2, .dedicated = dedicated}, straggler::bounded{0},
                                         train::descent{momentum, small}};
        const scratch_directory whole, half, rest;
        const auto through = run(plan, 9, nullptr, whole);
        CHECK(run(plan, 4, nullptr, half) != through);
        CHECK(run(plan, 9, &half, rest) == through);
    }
}

TEST_CASE("server_replica: its timeout is that of the group's options, however long") {
    const train::server_replica plan{server_options{}, straggler::bounded{0}, train::descent{momentum, small}};
    for (const duration timeout : {seconds(5), seconds(7200)})
        simulated::run(3, {}, [&](auto& net) {
            std::vector<double> model(2), gradient(2);
            auto replica = plan.template bind<double>(net, std::span<const double>(model), {.timeout = timeout});
            const auto held = replica.pull(model);
            const time_point begin = net.now();
            if (net.rank() == 0) {
                replica.push(gradient, *held);
                CHECK_THROWS_AS(replica.pull(model), rill::timeout);
                CHECK(net.now() >= begin + timeout);
                CHECK(net.now() < begin + timeout + seconds(1));
                replica.give_up(1);
                replica.end();
                CHECK(!replica.pull(model));
            } else if (net.rank() == 1) {
                net.sleep_until(begin + timeout + seconds(2));
            }
        });
}
