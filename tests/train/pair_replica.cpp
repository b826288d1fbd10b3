#include <rill/train/pair_replica.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/system/ad_psgd.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/asynchronous_trainer.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace rill;
using namespace jobs;

namespace in_pairs {

const auto plan = systems::ad_psgd(train::sgd{.momentum = 0.9}, train::constant_rate{0.05}, topology::anyone{});

template <class Net>
auto make(Net& net) {
    return train::asynchronous_trainer{
        net, spoilt_perceptron(net.rank(), {}),
        train::minibatches{data(), {.batch = 8, .rank = net.rank(), .ranks = net.size(), .key = {2}}}, plan,
        train::trainer_options{.initial = {3}, .group = {.timeout = seconds(20), .seed = 7}}};
}

/// Steps until this rank has made `count` in all.
template <class Trainer>
std::vector<float> run_to(Trainer& trainer, std::uint64_t count) {
    if (trainer.step_number() == count) trainer.retire();
    while (trainer.step())
        if (trainer.step_number() == count) trainer.retire();
    return copy_of_parameters(trainer);
}

}  // namespace in_pairs

TEST_CASE("pair_replica: a trainer learns, and the mean of all ranks' parameters is the result") {
    on_transports(4, [](auto& net) {
        auto trainer = in_pairs::make(net);
        spoilt_perceptron judge(0, {});
        train::minibatches all{data(), {.batch = data().rows, .rank = 0, .ranks = 1, .key = {2}}};
        const auto batch = all.next();
        const double before = judge.loss(trainer.parameters(), batch);
        auto result = in_pairs::run_to(trainer, 60);
        CHECK(trainer.counts().counted == 60);
        CHECK(trainer.version() >= 60);
        CHECK(!trainer.step());
        group workers{net, topology::ring{}};
        all_reduce(workers, result, result, aggregate::mean{});
        CHECK(judge.loss(result, batch) < 0.95 * before);
    });
}

TEST_CASE("pair_replica: a trainer goes on from its rank's file, alike each time") {
    const scratch_directory directory;
    const auto file = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
    std::vector<std::uint64_t> versions(3);
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = in_pairs::make(net);
        in_pairs::run_to(trainer, 10);
        train::checkpoint::writer out;
        trainer.save(out, "run.");
        out.save(file(net.rank()));
        versions[static_cast<std::size_t>(net.rank())] = trainer.version();
    });
    std::vector<std::vector<float>> first(3);
    for (const bool again : {false, true})
        simulated::run(3, {}, [&](auto& net) {
            auto trainer = in_pairs::make(net);
            trainer.restore(train::checkpoint::load(file(net.rank())), "run.");
            CHECK(trainer.step_number() == 10);
            CHECK(trainer.version() == versions[static_cast<std::size_t>(net.rank())]);
            const auto reached = in_pairs::run_to(trainer, 25);
            CHECK(trainer.step_number() == 25);
            CHECK(trainer.version() >= versions[static_cast<std::size_t>(net.rank())] + 15);
            auto& of_first = first[static_cast<std::size_t>(net.rank())];
            if (again)
                CHECK(reached == of_first);
            else
                of_first = reached;
        });
    std::vector<std::string> texts(3);
    simulated::run(3, {}, [&](auto& net) {
        auto trainer = in_pairs::make(net);
        texts[static_cast<std::size_t>(net.rank())] = message_of<std::exception>(
            [&] { trainer.restore(train::checkpoint::load(file(net.rank() == 2 ? 1 : net.rank())), "run."); });
    });
    for (const std::string& text : texts) CHECK(has(text, "expected 2, found 1"));
    CHECK(has(texts[0], "rank 2: "));
    CHECK(has(texts[1], "rank 2: "));
}
