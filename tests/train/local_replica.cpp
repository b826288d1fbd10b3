#include <rill/train/local_replica.hpp>

#include "replica_jobs.hpp"

#include <rill/straggler/bounded.hpp>
#include <rill/system/local_sgd.hpp>
#include <rill/system/rna.hpp>
#include <rill/system/stale_synchronous.hpp>
#include <rill/train/adam.hpp>

#include <doctest/doctest.h>

using namespace rill;
using namespace jobs;

TEST_CASE("local_replica: learns over rounds of all, over rounds of some and over servers") {
    const auto check = [](const auto& plan, int workers) {
        on_transports(4, [&](auto& net) {
            auto trainer = make_asynchronous(net, spoilt_perceptron(net.rank(), {}), plan, workers);
            const double before = loss_of(trainer.parameters());
            const auto own = retire_at(trainer, 60);
            const bool works = net.rank() < workers;
            CHECK((works ? has_learned(net, before, own) : loss_of(own) == before));
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
    // A rate that falls with each own step, and an outer step with momentum: all of their state must be saved.
    const auto plan = systems::local_sgd({.every = 3, .outer = {.momentum = 0.5, .nesterov = true}, .outer_rate = 0.5},
                                         train::adam{}, train::step_decay{.initial = 0.01, .factor = 0.9});
    CHECK(resumes(
        3, [&](auto& net) { return make_asynchronous(net, spoilt_perceptron(net.rank(), {}), plan, net.size()); }));
}
