#include <rill/train/automatic.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"
#include "metrics.hpp"
#include "sparse_samples.hpp"

#include <rill/compress/with_codings.hpp>
#include <rill/train/json_metrics.hpp>
#include <rill/train/sparse_bsp.hpp>
#include <rill/train/sparse_linear.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace rill;

namespace {

using vectors = std::vector<std::vector<float>>;
using texts = std::vector<std::string>;
constexpr int ranks = 4;

/// Of which the links are used at once, and of which a card sends one message at a time.
const simulated::network links{.latency = microseconds(1), .bandwidth = 1'000'000};
const simulated::network cards{.latency = microseconds(1), .bandwidth = 1'000'000, .cards = [](rank_t) {
                                   return network_card::full_duplex(1'000'000);
                               }};

const auto dense_over = [](const cost::exchange_choice& best) {
    return train::bsp{best.topology, jobs::with_momentum, jobs::rate};
};
const auto top_k_over = [momentum = jobs::with_momentum](const cost::exchange_choice& best) {
    return train::compressed_bsp{
        best.topology, compress::error_feedback{compress::with_codings{compress::top_k{.density = 0.1}, best.codings}},
        momentum, jobs::rate};
};
const train::automatic dense{cost::gradient_shape{}, dense_over};
const train::automatic top_k{{.density = 0.1, .copy = value_coding::qsgd4}, top_k_over};

static_assert(train::Strategy<std::remove_cv_t<decltype(dense)>, in_process::endpoint>);
static_assert(train::Strategy<std::remove_cv_t<decltype(top_k)>, simulated::endpoint, double>);

/// Trains with `plan` on a simulated network; calls `see(trainer)` on each rank before the first step.
template <class Plan, class See>
vectors trained_on(const simulated::network& network, const Plan& plan, See see) {
    vectors results(ranks);
    simulated::run(ranks, network, [&](simulated::endpoint& net) {
        auto trainer = jobs::make_trainer(net, plan);
        see(trainer);
        while (trainer.step_number() < 8) trainer.step();
        results[static_cast<std::size_t>(net.rank())] = jobs::copy_of_parameters(trainer);
    });
    return results;
}

/// With the parameters of the automatic strategy, those of the same strategy made by hand. Returns the composition.
template <class Make>
std::string compare(const simulated::network& network, const train::automatic<Make>& plan, const Make& make) {
    cost::exchange_choice choice;
    const vectors results = trained_on(network, plan, [&](auto& trainer) {
        choice = trainer.strategy().choice();
        CHECK(choice.gradient.dimension == trainer.parameters().size());
    });
    CHECK(results == trained_on(network, make(choice), [](auto&) {}));
    return choice.composition();
}

}  // namespace

TEST_CASE("automatic: trains as the strategy over the chosen exchange, bit for bit") {
    CHECK(compare(links, dense, dense_over) == "split_allgather with dense vectors");
    CHECK(compare(cards, dense, dense_over) == "halving_doubling with dense vectors");
    CHECK(compare(links, top_k, top_k_over) == "split_allgather with streams, indices as elias_fano, sums as qsgd4");
    CHECK(compare(cards, top_k, top_k_over) == "recursive_doubling with streams, indices as elias_fano");
}

TEST_CASE("automatic: also sparse gradients of their own") {
    vectors results(ranks), expected(ranks);
    const auto sparse_over = [](const cost::exchange_choice& best) {
        return train::sparse_bsp{best.topology, best.codings, train::sgd{}, jobs::rate};
    };
    simulated::run(ranks, links, [&](simulated::endpoint& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        const train::sparse_dataset rows = random_sparse(40, 90, 6, true, rank + 1);
        const auto train_with = [&](const auto& plan) {
            train::trainer trainer{net, train::sparse_linear<>(90),
                                   train::minibatches_of<train::sparse_dataset>{rows, {.batch = 5, .key = {rank}}},
                                   plan, train::trainer_options{.group = {.timeout = seconds(20)}}};
            while (trainer.step_number() < 8) trainer.step();
            return jobs::copy_of_parameters(trainer);
        };
        results[rank] = train_with(train::automatic{{.density = 0.05}, sparse_over});
        expected[rank] = train_with(sparse_over(cost::choose(net, {.dimension = 91, .density = 0.05})));
    });
    CHECK(results == expected);
    CHECK(results[0] == results[3]);
}

TEST_CASE("automatic: with real clocks all ranks make one strategy, and every record tells which") {
    texts told(3);
    const scratch_directory here;
    in_process::run(3, [&](in_process::endpoint& net) {
        train::json_metrics to_file(here / std::to_string(net.rank()).c_str());
        auto trainer = jobs::make_trainer(net, top_k);
        for (int step = 0; step < 3; ++step) {
            const train::step_record record = trainer.step();
            CHECK(record.choice == trainer.strategy().choice().composition());
            to_file(record);
        }
        told[static_cast<std::size_t>(net.rank())] = trainer.strategy().choice().reason();
        CHECK(text_of(here / std::to_string(net.rank()).c_str())
                  .find("\"choice\":\"" + trainer.strategy().choice().composition() + "\"") != std::string::npos);
    });
    CHECK(told == texts(3, told[0]));
}

TEST_CASE("automatic: a checkpoint goes on under the choice under which it was saved; else all ranks refuse it") {
    const scratch_directory here;
    const auto path = [&](rank_t rank) { return here / ("saved" + std::to_string(rank)).c_str(); };
    const vectors whole = trained_on(links, top_k, [&](auto& trainer) {
        for (int step = 0; step < 5; ++step) trainer.step();
        train::checkpoint::writer out;
        trainer.save(out, "job.");
        out.save(path(trainer.strategy().workers().rank()));
    });
    const auto restore = [&](auto& trainer) {
        trainer.restore(train::checkpoint::open(path(trainer.strategy().workers().rank())), "job.");
        CHECK(trainer.step_number() == 5);
    };
    CHECK(trained_on(links, top_k, restore) == whole);

    texts refusals;
    std::string chosen;
    (void)trained_on(cards, top_k, [&](auto& trainer) {
        const auto before = jobs::copy_of_parameters(trainer);
        refusals.push_back(message_of<train::data_error>([&] { restore(trainer); }));
        CHECK(jobs::copy_of_parameters(trainer) == before);
        chosen = trainer.strategy().choice().composition();
    });
    for (const std::string& each : refusals) {
        CHECK(each.find("section \"job.automatic.choice\": expected " + chosen + ", as this run has chosen") !=
              std::string::npos);
        CHECK(each.find("train::costs_in") != std::string::npos);
    }
    CHECK(refusals.size() == ranks);

    const auto file = train::checkpoint::load(path(0));
    const train::automatic again{
        cost::choose(train::costs_in(file, "job."),
                     {.dimension = whole[0].size(), .density = 0.1, .copy = value_coding::qsgd4}),
        top_k_over};
    CHECK(trained_on(cards, again, restore) == whole);
}

TEST_CASE("automatic: measured figures are restored as they were saved") {
    cost::measured_costs costs{.ranks = 3,
                               .link = {.link = {nanoseconds(4), 5},
                                        .both_ways = 6,
                                        .all_to_one = 7,
                                        .one_to_all = 8,
                                        .round_trip_from = 9,
                                        .at_once = 10},
                               .computing = {.fold = 0.1, .merge = 0.2, .copy = 0.3, .copy_entry = 0.4, .select = 0.5}};
    for (std::size_t i = 0; i < cost::measured_codings.size(); ++i) {
        costs.computing.encode[i] = 1.5 + static_cast<double>(i);
        costs.computing.decode[i] = 11.5 + static_cast<double>(i);
    }
    costs.sums.few = 19;
    double next = 20;
    for (auto* sums : {&costs.sums.small_dense, &costs.sums.small_streams, &costs.sums.dense, &costs.sums.streams})
        for (double& each : *sums) each = next += 1;
    CHECK(train::detail::costs_of(train::detail::numbers_of(costs)) == costs);
}

TEST_CASE("automatic: ranks that ask for different gradients are named") {
    texts errors(ranks);
    simulated::run(ranks, links, [&](simulated::endpoint& net) {
        const train::automatic odd{{.density = net.rank() == 2 ? 0.2 : 0.1}, top_k_over};
        errors[static_cast<std::size_t>(net.rank())] = message_of<mismatch>([&] { (void)odd.bind(net, jobs::three); });
    });
    CHECK(errors == texts(ranks, "rill: choose: rank 2 asked for density 0.2, rank 0 for 0.1"));
}

TEST_CASE("automatic: a rank that starts with other parameters is refused on all ranks") {
    texts errors(3);
    in_process::run(3, [&](in_process::endpoint& net) {
        const std::uint64_t key = net.rank() == 1 ? 4 : 3;
        const auto make = [&] {
            train::trainer{net,
                           train::perceptron<float>{{12, 9, 3}},
                           train::minibatches{jobs::data(), {.batch = 8}},
                           dense,
                           {.initial = {key}}};
        };
        errors[static_cast<std::size_t>(net.rank())] = message_of<mismatch>(make);
    });
    for (const std::string& each : errors)
        CHECK_MESSAGE(each.find("rank 1 calls with another first model") != std::string::npos, each);
}
