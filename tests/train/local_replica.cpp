#include <rill/train/local_replica.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <rill/straggler/bounded.hpp>
#include <rill/system/local_sgd.hpp>
#include <rill/system/rna.hpp>
#include <rill/system/stale_synchronous.hpp>
#include <rill/train/adam.hpp>
#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/checkpoint.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace rill;
using namespace jobs;

namespace by_oneself {

/// A rate that falls with each own step, and an outer step with momentum: all of their state must be saved.
const auto with_state =
    systems::local_sgd({.every = 3, .outer = {.momentum = 0.5, .nesterov = true}, .outer_rate = 0.5}, train::adam{},
                       train::step_decay{.initial = 0.01, .factor = 0.9});

template <class Net, class Plan>
auto make(Net& net, const Plan& plan) {
    return train::asynchronous_trainer{
        net, spoilt_perceptron(net.rank(), {}),
        train::minibatches{data(), {.batch = 8, .rank = net.rank(), .ranks = net.size(), .key = {2}}}, plan,
        train::trainer_options{.initial = {3}, .group = {.timeout = seconds(20), .seed = 7}}};
}

/// Steps until this rank has computed `last` gradients and returns the final parameters.
template <class Trainer>
std::vector<float> run_to(Trainer& trainer, std::uint64_t last) {
    while (trainer.step())
        if (trainer.step_number() == last) trainer.retire();
    return copy_of_parameters(trainer);
}

/// The final parameters of a run from the files of `from`, if any; its own files go to `to`.
std::vector<float> run(std::uint64_t last, const scratch_directory* from, const scratch_directory& to) {
    std::vector<float> reached;
    simulated::run(3, {}, [&](auto& net) {
        const std::string file = std::to_string(net.rank());
        auto trainer = make(net, with_state);
        if (from != nullptr) trainer.restore(train::checkpoint::load(*from / file.c_str()), "run.");
        const auto own = run_to(trainer, last);
        train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(to / file.c_str());
        if (net.rank() == 0) reached = own;
    });
    return reached;
}

}  // namespace by_oneself

using namespace by_oneself;

TEST_CASE("local_replica: learns over rounds of all, over rounds of some and over servers") {
    const auto check = [](const auto& plan, int workers) {
        on_transports(4, [&](auto& net) {
            auto trainer = make(net, plan);
            spoilt_perceptron judge(0, {});
            train::minibatches all{data(), {.batch = data().rows, .rank = 0, .ranks = 1, .key = {2}}};
            const auto batch = all.next();
            const double before = judge.loss(trainer.parameters(), batch);
            const auto own = run_to(trainer, 60);
            const bool works = net.rank() < workers;
            CHECK((judge.loss(own, batch) < 0.95 * before) == works);
            CHECK(trainer.step_number() == (works ? 60 : 0));
            const auto& told = trainer.counts();
            CHECK(told.counted + told.too_old + told.run_over == trainer.step_number());
        });
    };
    const train::descent own{train::sgd{}, train::constant_rate{0.2}};
    check(systems::local_sgd({.every = 4}, train::sgd{}, train::constant_rate{0.2}), 4);
    check(train::local_replica{systems::rna({}, train::sgd{}, train::constant_rate{0.25}), {.every = 4}, own}, 4);
    check(
        train::local_replica{
            systems::stale_synchronous({.staleness = 1}, train::sgd{}, train::constant_rate{0.25}), {.every = 4}, own},
        3);
}

TEST_CASE("local_replica: a trainer goes on where it was saved, bit for bit") {
    const scratch_directory whole, half, rest;
    const auto through = run(15, nullptr, whole);
    CHECK(run(6, nullptr, half) != through);
    CHECK(run(15, &half, rest) == through);
}
