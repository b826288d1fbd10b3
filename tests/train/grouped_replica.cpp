#include <rill/train/grouped_replica.hpp>

#include "replica_jobs.hpp"

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/core/contract.hpp>
#include <rill/system/rna.hpp>
#include <rill/train/asynchronous_trainer.hpp>
#include <rill/train/replica_plan.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace rill;
using namespace jobs;

namespace in_groups {

/// Even and odd ranks of the first `workers`.
train::grouping two_groups(int rank, int workers, bool dedicated = false) {
    train::grouping groups{.every = 3};
    groups.servers.dedicated = dedicated;
    for (rank_t each = rank % 2; each < workers; each += 2) groups.alike.members.push_back(each);
    return groups;
}

template <class Net, class Plan>
auto make(Net& net, const Plan& plan, int workers) {
    return make_asynchronous(net, spoilt_perceptron(net.rank(), {}), plan, workers);
}
auto plan_of(const train::grouping& groups) {
    return systems::grouped_rna(groups, {}, train::sgd{.momentum = 0.9}, train::constant_rate{0.02});
}

/// Steps until the first rank whose group has version `last` ends the run. Returns the final parameters.
template <class Trainer>
std::vector<float> end_at(Trainer& trainer, std::uint64_t last) {
    while (trainer.step())
        if (trainer.version() + 1 >= last) trainer.end();
    return copy_of_parameters(trainer);
}

/// A dedicated server, whose rank is `workers`, has no model.
template <class Net>
void check_all_have(Net& net, std::vector<float> own, int workers) {
    group all{net, topology::ring{}};
    std::vector<float> most(own.size());
    if (net.rank() == workers) own.assign(own.size(), -1e30F);
    all_reduce(all, own, most, aggregate::max{});
    if (net.rank() < workers) CHECK(most == own);
}

simulated::network two_speeds() {
    return {.latency = microseconds(10),
            .computing = [](rank_t rank, std::uint64_t, double) { return milliseconds(rank % 2 == 0 ? 1 : 4); }};
}

}  // namespace in_groups

static_assert(train::ReplicaPlan<decltype(in_groups::plan_of({})), simulated::endpoint>);

TEST_CASE("grouped_replica: learns, and ends with the same parameters on all ranks") {
    on_transports(5, [](auto& net) {
        auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 5)), 5);
        const double before = loss_of(trainer.parameters());
        const auto own = in_groups::end_at(trainer, 100);
        CHECK(has_learned(net, before, own));
        CHECK(trainer.version() >= 3);
        CHECK(!trainer.step());
        in_groups::check_all_have(net, own, 5);
    });
}

TEST_CASE("grouped_replica: a group that fails leaves the others running, if the rank that serves stays") {
    int stayed = 0;
    for (std::uint64_t after = 10; after <= 200; after += 5) {
        CAPTURE(after);
        auto network = in_groups::two_speeds();
        network.faults = {.faults = {faults::kill(1).after(after)}};
        std::vector<std::vector<float>> finals(4);
        bool all_made = true;
        simulated::run(4, network, [&](auto& net) {
            bool made = false;
            try {
                auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4)), 4);
                made = true;
                if (net.rank() == 1) {
                    while (trainer.step()) continue;
                } else if (net.rank() == 3) {
                    CHECK_THROWS_AS(while (trainer.step()) continue, error);
                    CHECK_FALSE(trainer.step());
                    finals[3] = copy_of_parameters(trainer);
                } else {
                    CHECK_NOTHROW(finals[static_cast<std::size_t>(net.rank())] = in_groups::end_at(trainer, 40));
                }
            } catch (const error&) {  // all ranks make the trainer
                CHECK_FALSE(made);
                all_made = false;
            }
        });
        if (!all_made) continue;
        ++stayed;
        CHECK(!finals[0].empty());
        CHECK(finals[0] == finals[2]);
        CHECK(finals[0] == finals[3]);
    }
    CHECK(stayed > 20);
}

TEST_CASE("grouped_replica: with a dedicated server, and by the mean of the groups' models") {
    simulated::run(5, in_groups::two_speeds(), [](auto& net) {
        auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4, true)), 4);
        if (net.rank() == 4) CHECK_THROWS_AS(trainer.end(), contract_violation);
        in_groups::check_all_have(net, in_groups::end_at(trainer, 40), 4);
    });
    simulated::run(4, in_groups::two_speeds(), [](auto& net) {
        const auto plan = systems::grouped_rna(in_groups::two_groups(net.rank(), 4), {}, train::sgd{},
                                               train::constant_rate{0.02}, aggregate::mean_of_latest{});
        auto trainer = in_groups::make(net, plan, 4);
        in_groups::check_all_have(net, in_groups::end_at(trainer, 40), 4);
    });
}

TEST_CASE("grouped_replica: a rank may leave before its first step") {
    for (const bool one_ends : {true, false})
        simulated::run(5, in_groups::two_speeds(), [&](auto& net) {
            auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4, true)), 4);
            if (one_ends && net.rank() == 0) trainer.end();
            if (!one_ends && net.rank() < 4) trainer.retire();
            while (trainer.step()) continue;
            CHECK(trainer.version() < 10);
            in_groups::check_all_have(net, copy_of_parameters(trainer), 4);
        });
}

TEST_CASE("grouped_replica: goes on from each rank's file") {
    const scratch_directory directory;
    const auto file_of = [&](auto& net) { return directory / std::to_string(net.rank()).c_str(); };
    std::vector<std::vector<float>> saved(5), resumed(5), again(5);
    simulated::run(5, in_groups::two_speeds(), [&](auto& net) {
        auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4, true)), 4);
        saved[static_cast<std::size_t>(net.rank())] = in_groups::end_at(trainer, 20);
        train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(file_of(net));
    });
    for (auto* const results : {&resumed, &again})
        simulated::run(5, in_groups::two_speeds(), [&](auto& net) {
            auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4, true)), 4);
            trainer.restore(train::checkpoint::load(file_of(net)), "run.");
            if (net.rank() < 4) CHECK(copy_of_parameters(trainer) == saved[0]);
            (*results)[static_cast<std::size_t>(net.rank())] = in_groups::end_at(trainer, 40);
            if (net.rank() % 2 == 0 && net.rank() < 4) CHECK(trainer.version() >= 40);
        });
    CHECK(resumed == again);
    CHECK(resumed[0] == resumed[3]);
    CHECK(resumed[0] != saved[0]);
    CHECK(saved[0] == saved[3]);
}

TEST_CASE("grouped_replica: a file that does not fit is refused on all ranks") {
    const scratch_directory directory;
    const auto file_of = [&](int rank) { return directory / std::to_string(rank).c_str(); };
    simulated::run(4, in_groups::two_speeds(), [&](auto& net) {
        auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4)), 4);
        in_groups::end_at(trainer, 10);
        train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(file_of(net.rank()));
    });
    const auto refusals = [&](auto path_of) {
        std::vector<std::string> texts(4);
        simulated::run(4, in_groups::two_speeds(), [&](auto& net) {
            auto trainer = in_groups::make(net, in_groups::plan_of(in_groups::two_groups(net.rank(), 4)), 4);
            texts[static_cast<std::size_t>(net.rank())] = message_of<std::exception>(
                [&] { trainer.restore(train::checkpoint::open(path_of(net.rank())), "run."); });
        });
        return texts;
    };
    for (const std::string& text : refusals([&](rank_t rank) { return file_of(rank == 2 ? 1 : rank); }))
        CHECK(text != "");
    const auto missing = refusals([&](rank_t rank) { return rank == 2 ? directory / "none" : file_of(rank); });
    for (std::size_t rank = 0; rank < 4; ++rank) {
        CAPTURE(missing[rank]);
        CHECK(has(missing[rank], "cannot be opened"));
        CHECK(has(missing[rank], "rank 2: ") == (rank != 2));
    }
}
