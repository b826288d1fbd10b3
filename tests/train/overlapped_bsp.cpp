#include <rill/train/overlapped_bsp.hpp>

#include "jobs.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/train/paced.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace rill;
using namespace jobs;

namespace {

using vectors = std::vector<std::vector<float>>;
constexpr std::size_t three_buckets = 200;  // of the perceptron's layers: weights 108, biases 9, weights 27, biases 3

/// The parameters of all ranks after 12 steps, one of which is skipped.
template <class Plan>
vectors trained(int ranks, const Plan& plan) {
    vectors results(static_cast<std::size_t>(ranks));
    in_process::run(ranks, [&](auto& net) {
        auto trainer = make_trainer(net, plan, {{.rank = ranks - 1, .step = 5, .coordinate = 130}});
        while (trainer.step_number() < 12) {
            const train::step_record record = trainer.step();
            CHECK(record.skipped() == (record.step == 5));
        }
        results[static_cast<std::size_t>(net.rank())] = copy_of_parameters(trainer);
    });
    return results;
}

constexpr std::size_t width = 64;
constexpr std::size_t layer_bytes = width * (width + 1) * sizeof(float);

/// The virtual time of a step on a perceptron of 8 equal layers. It computes for 12 ms, a third of that in the forward
/// pass, and its gradient takes as long to exchange on a ring of 4 ranks.
template <class Plan>
duration step_time(const Plan& plan) {
    const train::pace computing{.forward = milliseconds(4), .backward = milliseconds(8)};
    const std::uint64_t bandwidth = 8 * layer_bytes * 2 * 3 / 4 * 1000 / 12;
    duration taken{};
    simulated::run(4, {.latency = microseconds(10), .bandwidth = bandwidth}, [&](auto& net) {
        const train::dataset data = random_dataset(16, width, static_cast<int>(width));
        train::trainer trainer{net, train::paced{net, train::perceptron<float>(std::vector(9, width)), computing},
                               train::minibatches{data, {.batch = 4, .rank = net.rank(), .ranks = 4}}, plan};
        const time_point start = net.now();
        for (int step = 0; step < 3; ++step) trainer.step();
        if (net.rank() == 0) taken = (net.now() - start) / 3;
    });
    return taken;
}

template <class Shape>
constexpr train::bsp dense{Shape{}, with_momentum, rate};
template <class Shape>
constexpr train::overlapped_bsp overlapped{Shape{}, with_momentum, rate, train::no_clip{},
                                           fusion{.bytes = three_buckets}};

}  // namespace

TEST_CASE("overlapped_bsp: gives the bits of bsp if the topology keeps the order of ranks") {
    CHECK(trained(5, overlapped<topology::split_allgather>) == trained(5, dense<topology::split_allgather>));
}

TEST_CASE("overlapped_bsp: over a ring, gives the bits of an exchange bucket by bucket") {
    const std::vector<layer> layers{{"a", {0, 40}}, {"b", {40, 47}}, {"c", {47, 80}}};
    const train::overlapped_bsp plan{topology::ring{}, train::sgd{}, train::constant_rate{1}, train::no_clip{},
                                     fusion{.bytes = 4 * 40}};
    vectors expected(3), moved(3), whole(3);
    on_transports(3, [&](auto& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        std::vector<float> gradient(80);
        for (std::size_t i = 0; i < 80; ++i)
            gradient[i] = counter_rng(random_key{rank}).uniform(i) * (rank == 1 ? 1e6F : 1.0F);
        auto bound = plan.bind(net, layers);
        REQUIRE(bound.plan().buckets().size() == 2);

        expected[rank] = whole[rank] = gradient;
        for (const bucket& each : bound.plan().buckets()) {
            const std::span<float> part = std::span(expected[rank]).subspan(each.elements.begin, each.elements.size());
            all_reduce(bound.workers(), part, part, aggregate::mean{});
        }
        all_reduce(bound.workers(), whole[rank], whole[rank], aggregate::mean{});

        moved[rank].assign(80, 0);
        const train::step_record done =
            bound.step(std::span(moved[rank]), std::span(gradient), 0, [](const auto& ready) {
                for (const std::size_t layer : {1U, 0U, 2U}) ready(layer);
                return 0.0;
            });
        CHECK(done.exchange.contributors == 3);
        for (float& x : moved[rank]) x = -x;
    });
    CHECK(moved == expected);
    CHECK(moved != whole);
}

TEST_CASE("overlapped_bsp: clips per bucket") {
    const std::vector<layer> layers{{"a", {0, 2}}, {"b", {2, 4}}};
    const train::overlapped_bsp plan{topology::split_allgather{}, train::sgd{}, train::constant_rate{1},
                                     train::per_bucket{train::clip_norm{.most = 5}}, fusion{.bytes = 8}};
    simulated::run(1, {}, [&](auto& net) {
        auto bound = plan.bind(net, layers);
        std::vector<float> parameters(4), gradient{0, 1, 30, 40};
        bound.step(std::span(parameters), std::span(gradient), 0, [](const auto& ready) {
            ready(1);
            ready(0);
            return 0.0;
        });
        CHECK(parameters == std::vector<float>{0, -1, -3, -4});
    });
}

TEST_CASE("overlapped_bsp: a rank with other buckets is named before the first step") {
    std::vector<std::string> messages(3);
    on_transports(3, [&](auto& net) {
        train::overlapped_bsp plan = overlapped_plan;
        if (net.rank() == 1) plan.buckets.bytes = 64;
        try {
            make_trainer(net, plan);
        } catch (const mismatch& thrown) {
            CHECK(thrown.culprit() == 1);
            messages[static_cast<std::size_t>(net.rank())] = thrown.what();
        }
    });
    for (const std::string& message : messages) {
        CHECK(message.find("rank 1 ") != std::string::npos);
        CHECK(message.find("buckets") != std::string::npos);
    }
}

TEST_CASE("overlapped_bsp: an objective that throws in its backward pass fails the step on every rank") {
    std::vector<int> ended(3);
    on_transports(3, [&](auto& net) {
        std::vector<float> gradient(80), parameters(80);
        const auto step = [&] {
            const std::vector<layer> layers{{"a", {0, 40}}, {"b", {40, 80}}};
            auto bound = overlapped_plan.bind(net, layers);
            bound.step(std::span(parameters), std::span(gradient), 0, [&](const auto& ready) {
                ready(1);
                if (net.rank() == 2) throw std::out_of_range("no second layer today");
                ready(0);
                return 0.0;
            });
        };
        auto& own = ended[static_cast<std::size_t>(net.rank())];
        try {
            step();
        } catch (const std::out_of_range&) {
            own = 1;
        } catch (const peer_failure& thrown) {
            own = thrown.culprit() == 2 ? 2 : 0;
        }
        CHECK(std::vector<float>(80) == parameters);
    });
    CHECK(ended == std::vector<int>{2, 2, 1});
}

TEST_CASE("overlapped_bsp: where computing takes as long as the exchange, a step takes less than 3/4 of the time") {
    const train::overlapped_bsp plan{topology::ring{}, with_momentum, rate, train::no_clip{},
                                     fusion{.bytes = layer_bytes}};
    const duration without = step_time(train::bsp{topology::ring{}, with_momentum, rate}), with = step_time(plan);
    CHECK(without.seconds() == doctest::Approx(0.024).epsilon(0.03));
    CHECK(with.seconds() <= 0.75 * without.seconds());
    // The forward pass and the backward pass of the last layer are computed before anything can be sent.
    CHECK(with.seconds() >= 0.012 + 0.004 + 0.001);
    MESSAGE("a step takes " << with.seconds() / without.seconds() << " of the time without overlap");
}
