#include <rill/train/overlapped_bsp.hpp>

#include "../support/scratch.hpp"
#include "infinite_rate.hpp"
#include "jobs.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/compress/warming_top_k.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/paced.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
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

const std::vector<layer> layers_of_80{{"a", {0, 40}}, {"b", {40, 47}}, {"c", {47, 80}}};

std::vector<float> gradient_of_80(std::size_t rank, std::uint64_t step) {
    std::vector<float> made(80);
    for (std::size_t i = 0; i < 80; ++i) made[i] = counter_rng(random_key{rank}).uniform(80 * step + i) + 0.01F;
    return made;
}

constexpr auto backward = [](const auto& ready) {
    for (const std::size_t layer : {2U, 1U, 0U}) ready(layer);
    return 0.0;
};

/// Masks whose seed differs in the second bucket.
struct seeded_masks {
    std::uint64_t seed;
    auto operator()(std::size_t number, const bucket&) const {
        return compress::encoded{compress::random_mask{.density = 0.5, .seed = number == 1 ? seed : 0}};
    }
};

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

TEST_CASE("overlapped_bsp: a function that returns the same codec for each bucket gives the bits of that codec") {
    const compress::error_feedback codec{compress::top_k{.density = 0.2}};
    const auto with = [](auto codecs) {
        return train::overlapped_bsp{topology::split_allgather{},    with_momentum, rate, train::no_clip{},
                                     fusion{.bytes = three_buckets}, codecs};
    };
    const auto same = [](std::size_t, const bucket&) {
        return compress::error_feedback{compress::top_k{.density = 0.2}};
    };
    const vectors results = trained(4, with(codec));
    CHECK(results == trained(4, with(same)));
    CHECK(results != trained(4, overlapped<topology::split_allgather>));
}

TEST_CASE("overlapped_bsp: each bucket is sent through its own codec, which keeps what it leaves out") {
    const auto as_many = [](std::size_t number, const bucket&) {
        return compress::error_feedback{compress::top_k{.count = number == 0 ? 5U : 2U}};
    };
    const train::overlapped_bsp plan{
        topology::split_allgather{}, train::sgd{}, train::step_decay{.initial = 1, .factor = 0.5}, train::no_clip{},
        fusion{.bytes = 4 * 40},     as_many};
    vectors expected(3), moved(3);
    on_transports(3, [&](auto& net) {
        const auto rank = static_cast<std::size_t>(net.rank());
        auto bound = plan.bind(net, layers_of_80);
        REQUIRE(bound.plan().buckets().size() == 2);
        std::vector<decltype(as_many(0, bucket{}).template bind<float>(0))> codecs;
        for (const bucket& each : bound.plan().buckets())
            codecs.push_back(as_many(codecs.size(), each).template bind<float>(each.elements.size()));

        moved[rank].assign(80, 0);
        expected[rank].assign(80, 0);
        for (std::uint64_t number = 0; number < 4; ++number) {
            std::vector<float> gradient = gradient_of_80(rank, number);
            std::vector<float> step = gradient;
            for (float& x : step) x *= static_cast<float>(plan.rate.rate(number));
            for (std::size_t i = 0; i < 2; ++i) {
                const segment place = bound.plan().buckets()[i].elements;
                const std::span<float> part = std::span(step).subspan(place.begin, place.size());
                all_reduce(bound.workers(), part, part, codecs[i], aggregate::mean{});
            }
            for (std::size_t i = 0; i < 80; ++i) expected[rank][i] -= step[i];

            bound.step(std::span(moved[rank]), std::span(gradient), number, backward);
            for (std::size_t i = 0; i < 2; ++i) {
                const auto left = bound.codec(i).residual();
                CHECK(std::vector<float>(left.begin(), left.end()) ==
                      std::vector<float>(codecs[i].residual().begin(), codecs[i].residual().end()));
                if (number == 0) CHECK(std::count(left.begin(), left.end(), 0.0F) == (i == 0 ? 5 : 2));
            }
        }
    });
    CHECK(moved == expected);
}

TEST_CASE("overlapped_bsp: one bucket gives the bits of compressed_bsp with its codec") {
    const compress::momentum_correction sent{
        compress::error_feedback{compress::encoded{compress::warming_top_k{.density = 0.05, .operations = 8},
                                                   compress::qsgd{.bits = 4}, compress::packed_gaps{}}}};
    const train::step_decay falling{.initial = 1, .factor = 0.25, .every = 3};
    CHECK(trained(3, train::overlapped_bsp{topology::split_allgather{}, train::sgd{}, falling, train::no_clip{},
                                           fusion{.bytes = 10000}, sent}) ==
          trained(3, train::compressed_bsp{topology::split_allgather{}, sent, train::sgd{}, falling}));
}

TEST_CASE("overlapped_bsp: the finite buckets of a skipped step return to their codecs") {
    const train::overlapped_bsp plan{
        topology::split_allgather{}, train::sgd{},
        train::constant_rate{1},     train::no_clip{},
        fusion{.bytes = 8},          compress::error_feedback{compress::top_k{.count = 1}}};
    const std::vector<layer> layers{{"a", {0, 2}}, {"b", {2, 4}}};
    on_transports(2, [&](auto& net) {
        auto bound = plan.bind(net, layers);
        std::vector<float> parameters(4), gradient{1, 2, 3, 4};
        if (net.rank() == 1) gradient[0] = std::numeric_limits<float>::quiet_NaN();
        const auto compute = [](const auto& ready) {
            ready(1);
            ready(0);
            return 0.0;
        };
        CHECK(bound.step(std::span(parameters), std::span(gradient), 0, compute).skipped());
        CHECK(parameters == std::vector<float>(4));
        const auto left = [&](std::size_t i) {
            return std::vector<float>(bound.codec(i).residual().begin(), bound.codec(i).residual().end());
        };
        CHECK(left(0) == std::vector<float>{3, 4});
        CHECK(left(1) == (net.rank() == 0 ? std::vector<float>{1, 2} : std::vector<float>(2)));
        gradient.assign(4, 0);
        bound.step(std::span(parameters), std::span(gradient), 1, compute);
        CHECK(parameters == std::vector<float>{0, -1, 0, -4});
    });
}

TEST_CASE("overlapped_bsp: a checkpoint holds the residual of each bucket") {
    const scratch_directory directory;
    const std::string path = directory / "residuals";
    const train::overlapped_bsp plan{topology::split_allgather{}, with_momentum,  rate, train::no_clip{},
                                     fusion{.bytes = 4 * 40},     codec_by_size{}};
    simulated::run(1, {}, [&](auto& net) {
        auto bound = plan.bind(net, layers_of_80), other = plan.bind(net, layers_of_80);
        std::vector<float> parameters(80), gradient = gradient_of_80(0, 0);
        bound.step(std::span(parameters), std::span(gradient), 1, backward);
        train::checkpoint::writer out;
        bound.state().save(out, "job.");
        out.save(path);
        other.state().restore(train::checkpoint::load(path), "job.");
        for (std::size_t i = 0; i < 2; ++i) {
            const auto saved = bound.codec(i).residual(), restored = other.codec(i).residual();
            CHECK(std::vector<float>(saved.begin(), saved.end()) ==
                  std::vector<float>(restored.begin(), restored.end()));
        }
    });
}

TEST_CASE("overlapped_bsp: without codecs, no checkpoint goes on that holds residuals") {
    simulated::run(1, {}, [&](auto& net) {
        auto coded = layered_plan.bind(net, layers_of_80);
        auto plain = overlapped_plan.bind(net, layers_of_80);
        train::checkpoint::writer out;
        coded.state().save(out, "job.");
        const std::string refused = message_of<train::data_error>(
            [&] { plain.state().restore(train::checkpoint::of("saved", out.bytes()), "job."); });
        CHECK(refused ==
              "rill: saved: section \"job.codec.0.residual\": expected nothing of this name, found state that "
              "would be lost");
    });
}

TEST_CASE("overlapped_bsp: a rank whose bucket has another codec is named before the first step") {
    std::vector<std::string> messages(3);
    on_transports(3, [&](auto& net) {
        const seeded_masks masks{net.rank() == 1 ? 8U : 7U};
        const train::overlapped_bsp plan{topology::split_allgather{},    with_momentum, rate, train::no_clip{},
                                         fusion{.bytes = three_buckets}, masks};
        try {
            make_trainer(net, plan);
        } catch (const mismatch& thrown) {
            CHECK(thrown.culprit() == 1);
            messages[static_cast<std::size_t>(net.rank())] = thrown.what();
        }
    });
    for (const std::string& message : messages) {
        CHECK(message.find("rank 1 ") != std::string::npos);
        CHECK(message.find("codecs of the buckets") != std::string::npos);
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

TEST_CASE("overlapped_bsp: all ranks refuse an infinite rate before they compute") {
    check_infinite_rate(train::overlapped_bsp{topology::ring{}, train::sgd{}, infinite});
}
