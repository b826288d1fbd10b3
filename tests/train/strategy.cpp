#include <rill/train/strategy.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace rill;
using namespace jobs;

namespace {

/// What the concepts ask for and no more: each rank follows its own gradient, and adds up tables by hand.
struct alone {
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    template <class T>
    struct bound {
        simulated::endpoint* net;
        train::bound_sgd<T> optimizer;
        bool has_ended = false;

        bound(simulated::endpoint& end, std::size_t dimension)
            : net(&end), optimizer(train::sgd{.momentum = 0.5}.bind<T>(dimension)) {}
        bound(const bound&) = delete;
        bound& operator=(const bound&) = delete;

        template <class Compute>
        train::step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number,
                                Compute&& compute) {
            if (has_ended) return {.is_over = true};
            train::step_record record{.step = number};
            record.loss = compute();
            optimizer.step(parameters, std::span<const T>(gradient), 0.1);
            return record;
        }
        void end() { has_ended = true; }
        bool contributes() const { return true; }
        auto& state() { return optimizer; }
        const auto& state() const { return optimizer; }
        std::uint64_t position() const { return 17; }
        void resume_at(std::uint64_t position) { CHECK(position == 17); }
        void add_up(std::span<std::int64_t> table) {
            group all{*net, topology::ring{}};
            all_reduce(all, table, table);
        }
    };

    template <class T>
    bound<T> bind(simulated::endpoint& net, std::span<const layer> layers, const group_options&) const {
        return {net, train::dimension_of(layers)};
    }
};

static_assert(train::Strategy<alone, simulated::endpoint>);
static_assert(!train::Strategy<alone, in_process::endpoint>);
static_assert(!train::Strategy<train::sgd, simulated::endpoint>);
static_assert(train::Strategy<std::remove_cv_t<decltype(dense_plan)>, in_process::endpoint, double>);

}  // namespace

TEST_CASE("strategy: a trainer needs no more than the concept, and no group") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
    std::vector<std::vector<float>> through(2), resumed(2);
    simulated::run(2, {}, [&](simulated::endpoint& net) {
        auto trainer = make_trainer(net, alone{});
        while (const train::step_record record = trainer.step()) {
            if (record.step == 1) {
                train::checkpoint::writer out;
                trainer.save(out, "");
                out.save(path(net.rank()));
            }
            if (trainer.step_number() == 4) trainer.end();
        }
        CHECK(trainer.step_number() == 4);
        through[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
    });
    simulated::run(2, {}, [&](simulated::endpoint& net) {
        auto trainer = make_trainer(net, alone{});
        trainer.restore(train::checkpoint::load(path(net.rank())), "");  // of other parameters than the other rank's
        while (trainer.step_number() < 4) trainer.step();
        resumed[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
    });
    CHECK(through[0] != through[1]);
    CHECK(resumed == through);
}

TEST_CASE("strategy: the dimension of layers is where the last one ends") {
    CHECK(train::dimension_of({}) == 0);
    const std::vector<layer> layers{{"a", {0, 3}}, {"b", {3, 10}}};
    CHECK(train::dimension_of(layers) == 10);
}

TEST_CASE("strategy: the hook of a trainer gets the record of each step, once, and may throw") {
    std::vector<std::uint64_t> steps;
    simulated::run(1, {}, [&](simulated::endpoint& net) {
        train::trainer trainer{net,
                               spoilt_perceptron(0, {}),
                               train::minibatches{data(), {.batch = 8}},
                               dense_plan,
                               {},
                               [&](const train::step_record& record) {
                                   steps.push_back(record.step);
                                   CHECK(record.exchange.contributors == 1);
                                   if (record.step == 1) throw std::out_of_range("no more");
                               }};
        trainer.step();
        CHECK_THROWS_AS(trainer.step(), std::out_of_range);
        trainer.step();
        trainer.end();
        CHECK(!trainer.step());
    });
    CHECK(steps == std::vector<std::uint64_t>{0, 1, 2});
}

TEST_CASE("strategy: a record has the time of each phase on the transport's clock") {
    std::vector<train::step_record> records;
    simulated::run(2, {.latency = milliseconds(1)}, [&](simulated::endpoint& net) {
        const std::vector<layer> one{{"w", {0, 1}}};
        auto bound = dense_plan.bind(net, one);
        std::vector<float> parameters(1), gradient(1);
        const train::step_record record = bound.step(std::span(parameters), std::span(gradient), 0, [&] {
            net.sleep_until(net.now() + milliseconds(7));
            return 0.0;
        });
        if (net.rank() == 0) records.push_back(record);
    });
    REQUIRE(records.size() == 1);
    CHECK(records[0].phases.compute == milliseconds(7));
    CHECK(records[0].phases.exchange >= milliseconds(2));
    CHECK(records[0].phases.exchange == records[0].exchange.elapsed);
    CHECK(records[0].phases.update == duration{});
    CHECK(records[0].elapsed == records[0].phases.compute + records[0].phases.exchange);
}
