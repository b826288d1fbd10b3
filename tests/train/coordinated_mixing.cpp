#include <rill/train/coordinated_mixing.hpp>

#include "../support/scratch.hpp"

#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace coordinated_training {

using namespace rill;
using train::coordinated_mixing;
using train::decentralized;

namespace {

constexpr int ranks = 4;
constexpr std::size_t dimension = 20;
constexpr train::constant_rate rate{0.1};
constexpr compress::random_mask mask{.density = 0.4, .seed = 3};
const std::vector<layer> layers{{"w", {0, dimension}}};
using models = std::vector<std::vector<double>>;

auto plan_of(const coordinated& by) {
    return decentralized{coordinated_mixing{topology::random_matching{}, by}, train::sgd{.momentum = 0.5}, rate, mask};
}
using plan_type = decltype(plan_of({}));
static_assert(train::Strategy<plan_type, simulated::endpoint>);
static_assert(train::Strategy<plan_type, in_process::endpoint, double>);

/// Rank r has the loss Σ ½ (x - r - i)².
template <class Bound>
train::step_record step(Bound& bound, std::vector<double>& model, int rank, std::uint64_t number) {
    std::vector<double> gradient(dimension);
    return bound.step(std::span(model), std::span(gradient), number, [&] {
        for (std::size_t i = 0; i < dimension; ++i) gradient[i] = model[i] - rank - static_cast<double>(i);
        return 0.0;
    });
}

const auto simulation = [](auto body) { simulated::run(ranks, {}, body); };
const auto threads = [](auto body) { in_process::run(ranks, body); };

/// Steps until the run is over, or `end` is called after the given step; returns the models.
template <class Run>
models trained(Run run, const coordinated& by, std::uint64_t ends_after = ~std::uint64_t{0}) {
    models all(ranks, std::vector<double>(dimension, 1));
    run([&](auto& net) {
        auto& model = all[static_cast<std::size_t>(net.rank())];
        auto bound = plan_of(by).template bind<double>(net, layers);
        CHECK(bound.contributes() == (by.trains || net.rank() != 0));
        std::uint64_t number = 0;
        while (const auto record = step(bound, model, net.rank(), number)) {
            CHECK(record.exchange.contributors == 2);
            if (++number == ends_after) bound.end();
        }
        CHECK(!step(bound, model, net.rank(), number));
        CHECK(number == (bound.contributes() ? std::min(by.rounds, ends_after) : 0));
    });
    return all;
}

/// The same without messages.
models plain(std::uint64_t steps) {
    models all(ranks, std::vector<double>(dimension, 1)), moved_by(ranks, std::vector<double>(dimension));
    const auto key = random_key{0}.derive(fingerprint("gossip"));
    auto bound = topology::random_matching{}.bind(ranks, key);
    auto codec = mask.bind<double>(dimension);
    mixing_row row;
    for (std::uint64_t round = 0; round < steps; ++round) {
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            for (std::size_t i = 0; i < dimension; ++i) {
                const double gradient = all[rank][i] - static_cast<double>(rank) - static_cast<double>(i);
                moved_by[rank][i] = 0.5 * moved_by[rank][i] + gradient;
                all[rank][i] -= rate.value * moved_by[rank][i];
            }
        const models before = all;
        codec.begin(key.derive(round).value >> 32U);
        std::vector<double> ones(codec.coded_dimension(), 1.0), marks(dimension);
        codec.write_back(std::span<const double>(ones), marks);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            bound.fill(round, static_cast<rank_t>(rank), row);
            for (std::size_t i = 0; i < dimension; ++i)
                if (marks[i] != 0)
                    all[rank][i] = (before[rank][i] + before[static_cast<std::size_t>(row.senders[0].peer)][i]) / 2;
        }
    }
    return all;
}

void check_close(const models& a, const models& b) {
    for (std::size_t rank = 0; rank < a.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i) CHECK(a[rank][i] == doctest::Approx(b[rank][i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("decentralized with a coordinator: the step of the last round is the last one, also among local steps") {
    std::vector<std::uint64_t> steps(ranks);
    models all(ranks, std::vector<double>(dimension, 1));
    simulated::run(ranks, {}, [&](simulated::endpoint& net) {
        const decentralized plan{coordinated_mixing{topology::random_matching{}, {.rounds = 3}},
                                 train::sgd{},
                                 rate,
                                 mask,
                                 train::mix_after{},
                                 train::every{4}};
        auto bound = plan.bind<double>(net, layers);
        const auto rank = static_cast<std::size_t>(net.rank());
        while (step(bound, all[rank], net.rank(), steps[rank])) ++steps[rank];
    });
    CHECK(steps == std::vector<std::uint64_t>(ranks, 12));
}

TEST_CASE("decentralized with a coordinator: steps are those of a plain program, simulated and over threads") {
    const models seen = trained(simulation, {.rounds = 12});
    check_close(seen, plain(12));
    CHECK(trained(threads, {.rounds = 12}) == seen);
}

TEST_CASE("decentralized with a coordinator: all ranks end it after the same step") {
    const models seen = trained(simulation, {.rounds = 100}, 12);
    CHECK(seen == trained(simulation, {.rounds = 12}));
    CHECK(trained(threads, {.rounds = 100}, 12) == seen);
}

TEST_CASE("decentralized with a coordinator: a rank 0 that does not train makes no steps") {
    models all(ranks, std::vector<double>(dimension, 1));
    simulated::run(ranks, {}, [&](simulated::endpoint& net) {
        auto& model = all[static_cast<std::size_t>(net.rank())];
        auto bound = plan_of({.rounds = 9, .trains = false}).bind<double>(net, layers);
        CHECK(bound.contributes() == (net.rank() != 0));
        std::uint64_t number = 0;
        while (step(bound, model, net.rank(), number)) ++number;
        CHECK(number == (net.rank() == 0 ? 0U : 9U));
    });
    CHECK(all[0] == std::vector<double>(dimension, 1));
}

TEST_CASE("decentralized with a coordinator: the time that a rank waits to join is in its first record") {
    simulated::run(ranks, {}, [&](simulated::endpoint& net) {
        std::vector<double> model(dimension, 1);
        auto bound = plan_of({.rounds = 2}).bind<double>(net, layers);
        if (net.rank() == 0) net.sleep_until(net.now() + milliseconds(10));
        std::uint64_t number = 0;
        while (const auto record = step(bound, model, net.rank(), number)) {
            if (number++ != 0 || net.rank() == 0) continue;
            CHECK(record.elapsed >= milliseconds(9));
            CHECK(record.phases.exchange >= milliseconds(9));
            CHECK(record.phases.compute == duration{});
        }
    });
}

TEST_CASE("decentralized with a coordinator: training goes on without a rank that dies") {
    simulated::network network;
    network.faults.faults = {faults::kill(2).after(40)};
    int ended = 0;
    simulated::run(ranks, network, [&](simulated::endpoint& net) {
        std::vector<double> model(dimension, 1);
        auto bound = plan_of({.rounds = 30}).bind<double>(net, layers);
        std::uint64_t number = 0;
        while (step(bound, model, net.rank(), number)) ++number;
        CHECK(number == 30);
        ++ended;
    });
    CHECK(ended == ranks - 1);
}

TEST_CASE("decentralized with a coordinator: a checkpoint goes on bit for bit, in a new run or between two steps") {
    const models wanted = trained(simulation, {.rounds = 12});
    const auto goes_on = [&](auto run) {
        const scratch_directory directory;
        models all(ranks, std::vector<double>(dimension, 1)), saved = all;
        run([&](auto& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            const auto path = directory / std::to_string(net.rank()).c_str();
            auto bound = plan_of({.rounds = 12}).template bind<double>(net, layers);
            std::uint64_t position = 0;
            for (std::uint64_t number = 0; number < 9; ++number) {
                if (number == 5) {
                    train::checkpoint::writer out;
                    bound.state().save(out, "a.");
                    out.save(path);
                    position = bound.position();
                    saved[self] = all[self];
                }
                CHECK(step(bound, all[self], net.rank(), number));
            }
            CHECK(position == 5);
            const auto restore = [&](auto& into) {
                into.resume_at(position);
                into.state().restore(train::checkpoint::load(path), "a.");
                all[self] = saved[self];
                std::uint64_t number = 5;
                while (step(into, all[self], net.rank(), number)) ++number;
                CHECK(number == 12);
                CHECK(all[self] == wanted[self]);
            };
            restore(bound);
            auto other = plan_of({.rounds = 12}).template bind<double>(net, layers);
            restore(other);
        });
    };
    goes_on(simulation);
    goes_on(threads);
}

TEST_CASE("decentralized with a coordinator: a run that is over goes on from a checkpoint, twice") {
    const models wanted = trained(simulation, {.rounds = 12}), saved = trained(simulation, {.rounds = 12}, 5);
    for (const bool ends : {false, true})
        simulated::run(ranks, {}, [&](simulated::endpoint& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            auto bound = plan_of({.rounds = 12}).bind<double>(net, layers);
            std::vector<double> model(dimension, 1);
            std::uint64_t number = 0;
            auto at_five = bound.state();
            while (step(bound, model, net.rank(), number)) {
                if (++number == 5) at_five = bound.state();
                if (ends && number == 8) bound.end();
            }
            for (int again = 0; again < 2; ++again) {
                bound.resume_at(5);
                bound.state() = at_five;
                model = saved[self];
                number = 5;
                while (step(bound, model, net.rank(), number)) ++number;
                CHECK(number == 12);
                CHECK(model == wanted[self]);
            }
        });
}

TEST_CASE("decentralized with a coordinator: a rank that was out takes part again after a checkpoint") {
    for (const rank_t late : {0, 2})
        simulated::run(ranks, {}, [&](simulated::endpoint& net) {
            auto bound = plan_of({.rounds = 40}).bind<double>(net, layers, {.timeout = seconds(1)});
            std::vector<double> model(dimension, 1);
            std::uint64_t number = 0;
            for (; number < 7; ++number) CHECK(step(bound, model, net.rank(), number));
            if (net.rank() == late) {
                net.sleep_until(time_point{} + seconds(10));
                CHECK_THROWS_AS(step(bound, model, net.rank(), number), timeout);
            } else {
                while (number < 20) CHECK(step(bound, model, net.rank(), number++));
                net.sleep_until(time_point{} + seconds(10));
            }
            bound.resume_at(5);
            for (number = 5; step(bound, model, net.rank(), number); ++number) CHECK(bound.latest().contributors == 2);
            CHECK(number == 40);
        });
}

}  // namespace coordinated_training
