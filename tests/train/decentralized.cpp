#include <rill/train/decentralized.hpp>

#include "../support/scratch.hpp"
#include "infinite_rate.hpp"

#include <rill/collective/group.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/coordinated_mixing.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace decentralized_training {

using namespace rill;
using train::d_squared;
using train::decentralized;
using train::every;
using train::mix_after;
using train::mix_before;
using train::mix_beside;

namespace {

constexpr std::size_t dimension = 20;
constexpr train::constant_rate rate{0.1};
constexpr topology::ring_neighbours ring{.own = 0.5};
const std::vector<layer> layers{{"w", {0, dimension}}};
using models = std::vector<std::vector<double>>;

/// Rank r has the loss Σ c/2 (x - a)².
double curvature(std::size_t rank) { return 1 + 0.5 * static_cast<double>(rank % 3); }
double center(std::size_t rank, std::size_t i) { return static_cast<double>((7 * rank + i) % 11); }
double slope(std::size_t rank, std::size_t i, double at) { return curvature(rank) * (at - center(rank, i)); }
double best(std::size_t ranks, std::size_t i) {
    double sum = 0, weight = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        sum += curvature(rank) * center(rank, i);
        weight += curvature(rank);
    }
    return sum / weight;
}

double distance_from_best(const models& all) {
    double worst = 0;
    for (const auto& model : all)
        for (std::size_t i = 0; i < dimension; ++i) worst = std::max(worst, std::abs(model[i] - best(all.size(), i)));
    return worst;
}

/// Each rank's step `number`, by its strategy.
template <class Bound>
train::step_record step(Bound& bound, std::size_t rank, std::vector<double>& model, std::uint64_t number) {
    std::vector<double> gradient(dimension);
    return bound.step(std::span(model), std::span(gradient), number, [&] {
        for (std::size_t i = 0; i < dimension; ++i) gradient[i] = slope(rank, i, model[i]);
        return 0.0;
    });
}

template <class Plan>
models fitted(const Plan& plan, int ranks, std::uint64_t steps) {
    models all(static_cast<std::size_t>(ranks), std::vector<double>(dimension, 1));
    simulated::run(ranks, {}, [&](simulated::endpoint& net) {
        const auto self = static_cast<std::size_t>(net.rank());
        auto bound = plan.template bind<double>(net, layers);
        CHECK(bound.contributes());
        for (std::uint64_t number = 0; number < steps; ++number)
            CHECK(step(bound, self, all[self], number).step == number);
        bound.end();
        CHECK(!step(bound, self, all[self], steps));
    });
    return all;
}

/// Σ w_ij x_j on the ring with weights ½, ¼, ¼.
models mixed(const models& x) {
    models all = x;
    for (std::size_t rank = 0; rank < x.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i)
            all[rank][i] = x[rank][i] / 2 + (x[(rank + 1) % x.size()][i] + x[(rank + x.size() - 1) % x.size()][i]) / 4;
    return all;
}
models moved(const models& x, const models& at) {
    models all = x;
    for (std::size_t rank = 0; rank < x.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i) all[rank][i] -= rate.value * slope(rank, i, at[rank][i]);
    return all;
}

void check_close(const models& a, const models& b) {
    double worst = 0;
    for (std::size_t rank = 0; rank < a.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i) worst = std::max(worst, std::abs(a[rank][i] - b[rank][i]));
    CHECK(worst < 1e-12);
}

const topology::directed graph{.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}}};
const decentralized choco{ring, train::sgd{.momentum = 0.5}, rate,
                          compress::difference{compress::top_k{.density = 0.3}, 0.4}};
const decentralized corrected{ring, train::sgd{}, rate, compress::keep_all{}, d_squared{}};
const decentralized pushed{graph, train::sgd{}, train::inverse_time{.c1 = 1, .c2 = 10}};

static_assert(train::Strategy<std::remove_cv_t<decltype(choco)>, simulated::endpoint>);
static_assert(train::Strategy<std::remove_cv_t<decltype(corrected)>, simulated::endpoint, double>);
static_assert(!decltype(corrected)::replicas_equal);

}  // namespace

TEST_CASE("decentralized: steps and mixing in either order are those of a plain program") {
    const models first(5, std::vector<double>(dimension, 1));
    models after = first, before = first, local = first;
    for (int number = 0; number < 10; ++number) {
        after = mixed(moved(after, after));
        before = moved(mixed(before), before);
        local = moved(local, local);
        if (number % 4 == 3) local = mixed(local);
    }
    check_close(fitted(decentralized{ring, train::sgd{}, rate}, 5, 10), after);
    check_close(fitted(decentralized{ring, train::sgd{}, rate, compress::keep_all{}, mix_before{}}, 5, 10), before);
    check_close(fitted(decentralized{ring, train::sgd{}, rate, compress::keep_all{}, mix_after{}, every{4}}, 5, 10),
                local);
}

TEST_CASE("decentralized: mixing beside the gradient gives the bits of mixing before the step, sooner") {
    const auto timed = [](const auto& plan, models& all) {
        time_point end{};
        simulated::run(4, {.latency = milliseconds(3)}, [&](simulated::endpoint& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            auto bound = plan.template bind<double>(net, layers);
            const time_point begin = net.now();
            for (std::uint64_t number = 0; number < 10; ++number) {
                std::vector<double> gradient(dimension);
                bound.step(std::span(all[self]), std::span(gradient), number, [&] {
                    net.sleep_until(net.now() + milliseconds(10));
                    for (std::size_t i = 0; i < dimension; ++i) gradient[i] = slope(self, i, all[self][i]);
                    return 0.0;
                });
            }
            end = std::max(end, time_point{} + (net.now() - begin));
        });
        return (end - time_point{}).ns / 1'000'000;
    };
    const auto same = [&](const auto& before, const auto& beside) {
        models one(4, std::vector<double>(dimension, 1)), other = one;
        const auto takes = timed(before, one), takes_beside = timed(beside, other);
        CHECK(one == other);
        CHECK(takes >= 130);
        CHECK(takes_beside < 110);
    };
    const compress::random_mask mask{.density = 0.4};
    same(decentralized{ring, train::sgd{}, rate, mask, mix_before{}},
         decentralized{ring, train::sgd{}, rate, mask, mix_beside{}});
    same(decentralized{graph, train::sgd{}, rate, compress::keep_all{}, mix_before{}},
         decentralized{graph, train::sgd{}, rate, compress::keep_all{}, mix_beside{}});
    const compress::difference some{compress::top_k{.density = 0.3}, 0.4};
    same(decentralized{ring, train::sgd{}, rate, some, mix_before{}},
         decentralized{ring, train::sgd{}, rate, some, mix_beside{}});
}

TEST_CASE("decentralized: what throws beside the gradient, or in it, is thrown by the step") {
    simulated::run(4, {}, [](simulated::endpoint& net) {
        const decentralized plan{ring, train::sgd{}, rate, compress::keep_all{}, mix_beside{}};
        auto bound = plan.bind<double>(net, layers);
        std::vector<double> model(dimension), gradient(dimension);
        if (net.rank() == 1) model[3] = std::numeric_limits<double>::quiet_NaN();
        try {
            bound.step(std::span(model), std::span(gradient), 0, [] { return 0.0; });
            CHECK(false);
        } catch (const error& e) {
            CHECK(e.culprit() == 1);
            CHECK(std::string(e.what()).find("coordinate 3") != std::string::npos);
        }
    });
    simulated::run(1, {}, [](simulated::endpoint& net) {
        const decentralized plan{ring, train::sgd{}, rate, compress::keep_all{}, mix_beside{}};
        auto bound = plan.bind<double>(net, layers);
        std::vector<double> model(dimension, 1), gradient(dimension);
        const auto throws = []() -> double { throw std::out_of_range("no data"); };
        CHECK_THROWS_AS(bound.step(std::span(model), std::span(gradient), 0, throws), std::out_of_range);
        CHECK(model == std::vector<double>(dimension, 1));
    });
}

TEST_CASE(
    "decentralized: once a failure has ended the group, each further step that mixes beside the gradient throws it") {
    std::atomic<int> ended = 0;
    const auto body = [&](auto& net) {
        const decentralized plan{ring, train::sgd{}, rate, compress::keep_all{}, mix_beside{}};
        auto bound = plan.template bind<double>(net, layers);
        std::vector<double> model(dimension), gradient(dimension);
        std::vector<std::string> told;
        for (std::uint64_t step = 0; step < 6; ++step) {
            const auto compute = [&] {
                if (net.rank() == 1 && step == 2) throw std::runtime_error("no more images");
                return 0.0;
            };
            try {
                bound.step(std::span(model), std::span(gradient), step, compute);
            } catch (const error& e) {
                told.emplace_back(e.what());
            }
        }
        ++ended;
        CHECK(told.size() >= 2);
        for (const std::string& each : told) CHECK(each == "rill: rank 1 failed: no more images");
    };
    CHECK_THROWS_WITH(simulated::run(3, {}, body), "no more images");
    CHECK_THROWS_WITH(in_process::run(3, body), "no more images");
    CHECK(ended == 4);
}

TEST_CASE("decentralized: a step whose gradient throws can be made again, and has mixed once") {
    const auto same = []<class Plan>(const Plan& plan, std::uint64_t most = 6) {
        constexpr bool is_beside = std::same_as<decltype(Plan::order), mix_beside>;
        const auto trained = [&](bool fails) {
            models all(4, std::vector<double>(dimension, 1));
            simulated::run(4, {.latency = milliseconds(3)}, [&](simulated::endpoint& net) {
                const auto self = static_cast<std::size_t>(net.rank());
                auto bound = plan.template bind<double>(net, layers);
                std::vector<double> gradient(dimension);
                int thrown = 0;
                for (std::uint64_t number = 0; number < most; ++number) {
                    const std::vector<double> before = all[self];
                    bool throws = fails && self == number % 3;
                    const auto compute = [&] {
                        if (std::exchange(throws, false)) throw std::out_of_range("no data");
                        for (std::size_t i = 0; i < dimension; ++i) gradient[i] = slope(self, i, all[self][i]);
                        return 0.0;
                    };
                    const auto step = [&] {
                        return bound.step(std::span(all[self]), std::span(gradient), number, compute);
                    };
                    train::step_record made;
                    try {
                        made = step();
                    } catch (const std::out_of_range&) {
                        ++thrown;
                        if (is_beside) CHECK(all[self] == before);
                        made = step();
                    }
                    if (!made) break;
                    if (most == 6) CHECK(made.exchange.contributors > 1);
                    CHECK(bound.position() == number + 1);
                }
                CHECK((thrown > 0) == (fails && self < 3));
            });
            return all;
        };
        CHECK(trained(true) == trained(false));
    };
    const compress::random_mask mask{.density = 0.4};
    same(decentralized{ring, train::sgd{}, rate, mask, mix_before{}});
    same(decentralized{ring, train::sgd{}, rate, compress::keep_all{}, mix_beside{}});
    same(decentralized{ring, train::sgd{}, rate, mask, mix_beside{}});
    same(decentralized{ring, train::sgd{}, rate, compress::difference{compress::top_k{.density = 0.3}, 0.4},
                       mix_beside{}});
    same(decentralized{graph, train::sgd{}, rate, compress::keep_all{}, mix_beside{}});
    const train::coordinated_mixing pairs{topology::random_matching{}, coordinated{.rounds = 6}};
    same(decentralized{pairs, train::sgd{}, rate, mask, mix_beside{}}, 100);
}

TEST_CASE("decentralized: D² is that of a plain program, and finds the minimum of all where D-PSGD does not") {
    models before(6, std::vector<double>(dimension, 1)), now = mixed(moved(before, before));
    for (int number = 1; number < 10; ++number) {
        models next = moved(now, now), last = moved(before, before);
        for (std::size_t rank = 0; rank < 6; ++rank)
            for (std::size_t i = 0; i < dimension; ++i) next[rank][i] += now[rank][i] - last[rank][i];
        before = now;
        now = mixed(next);
    }
    check_close(fitted(corrected, 6, 10), now);
    CHECK(distance_from_best(fitted(corrected, 6, 600)) < 1e-6);
    CHECK(distance_from_best(fitted(decentralized{ring, train::sgd{}, rate}, 6, 600)) > 0.1);
}

TEST_CASE("decentralized: masks, differences and push-sum come near the minimum of all") {
    const train::inverse_time falls{.c1 = 4, .c2 = 40};
    const auto far = [](const auto& plan, int ranks) { return distance_from_best(fitted(plan, ranks, 2000)); };
    CHECK(far(decentralized{topology::random_matching{}, train::sgd{}, falls, compress::random_mask{.density = 0.3}},
              6) < 0.2);
    CHECK(far(decentralized{ring, train::sgd{}, falls, compress::difference{compress::top_k{.density = 0.3}, 0.4}}, 6) <
          0.2);
    CHECK(far(pushed, 4) < 0.05);
}

TEST_CASE("decentralized: an exchange tells who was mixed, and local steps send nothing") {
    simulated::run(5, {}, [](simulated::endpoint& net) {
        const decentralized plan{ring, train::sgd{}, rate, compress::keep_all{}, mix_after{}, every{3}};
        auto bound = plan.bind<double>(net, layers);
        std::vector<double> model(dimension);
        for (std::uint64_t number = 0; number < 6; ++number) {
            const auto record = step(bound, static_cast<std::size_t>(net.rank()), model, number);
            const bool exchanges = number % 3 == 2;
            CHECK(record.exchange.contributors == (exchanges ? 3 : 0));
            CHECK(record.exchange.wire.messages_sent == (exchanges ? 2U : 0U));
            CHECK(bound.latest().in.size() == (number < 2 ? 0U : 3U));
        }
        CHECK(bound.position() == 2);
    });
}

TEST_CASE("decentralized: a gradient that is not finite skips its own rank's step alone") {
    simulated::run(4, {}, [](simulated::endpoint& net) {
        auto bound = decentralized{ring, train::sgd{}, rate}.bind<double>(net, layers);
        std::vector<double> model(dimension, 0), gradient(dimension);
        const auto record = bound.step(std::span(model), std::span(gradient), 0, [&] {
            gradient.assign(dimension, -10);
            if (net.rank() == 1) gradient[5] = std::numeric_limits<double>::infinity();
            return 0.0;
        });
        if (net.rank() == 1) {
            REQUIRE(record.skipped());
            CHECK(record.invalid[0] == train::invalid_gradient{1, 5});
        } else {
            CHECK(!record.skipped());
        }
        const double moves[] = {0.75, 0.5, 0.75, 1};  // ranks 0, 2 and 3 have moved by 1, and all have mixed
        CHECK(model == std::vector<double>(dimension, moves[net.rank()]));
    });
}

TEST_CASE("decentralized: goes on from a checkpoint bit for bit") {
    const auto check = [](const auto& plan) {
        const scratch_directory directory;
        const auto path = [&](rank_t rank) { return directory / std::to_string(rank).c_str(); };
        const models through = fitted(plan, 4, 9);
        models all(4, std::vector<double>(dimension, 1));
        simulated::run(4, {}, [&](simulated::endpoint& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            auto bound = plan.template bind<double>(net, layers);
            for (std::uint64_t number = 0; number < 5; ++number) step(bound, self, all[self], number);
            train::checkpoint::writer out;
            bound.state().save(out, "a.");
            out.save(path(net.rank()));
        });
        simulated::run(4, {}, [&](simulated::endpoint& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            auto bound = plan.template bind<double>(net, layers);
            auto state = bound.state();
            state.restore(train::checkpoint::load(path(net.rank())), "a.");
            bound.resume_at(5);  // first what other ranks can refuse, as a trainer does
            bound.state() = std::move(state);
            for (std::uint64_t number = 5; number < 9; ++number) step(bound, self, all[self], number);
        });
        CHECK(all == through);
    };
    check(choco);
    check(corrected);
    check(pushed);
}

TEST_CASE("decentralized: all ranks refuse an infinite rate before they compute") {
    jobs::check_infinite_rate(decentralized{ring, train::sgd{}, jobs::infinite});
}

TEST_CASE("decentralized: D² refuses a mixing of small eigenvalues, and local steps") {
    const auto bind_on = [](int ranks, const auto& plan) {
        simulated::run(ranks, {}, [&](simulated::endpoint& net) { (void)plan.template bind<double>(net, layers); });
    };
    const topology::ring_neighbours thirds{};
    const decentralized of_thirds{thirds, train::sgd{}, rate, compress::keep_all{}, d_squared{}};
    CHECK_THROWS_WITH_AS(bind_on(4, of_thirds), doctest::Contains("above -1/3"), contract_violation);
    CHECK_NOTHROW(bind_on(5, of_thirds));
    CHECK_THROWS_WITH_AS(
        bind_on(4, decentralized{ring, train::sgd{}, rate, compress::keep_all{}, d_squared{}, every{2}}),
        doctest::Contains("every"), contract_violation);
    CHECK_THROWS_WITH_AS(
        bind_on(4, decentralized{ring, train::sgd{}, rate, compress::keep_all{}, train::mix_after{}, every{0}}),
        doctest::Contains("steps is 0"), contract_violation);
}

}  // namespace decentralized_training
