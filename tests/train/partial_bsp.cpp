#include <rill/train/partial_bsp.hpp>

#include "../support/scratch.hpp"
#include "infinite_rate.hpp"
#include "jobs.hpp"

#include <rill/straggler/fastest.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace rill;
using namespace jobs;

namespace {

constexpr int ranks = 4;
const std::vector<layer> one_layer{{"w", {0, 1}}};

/// Rank r computes for r · 10 ms, and its gradient is 2^r; all follow it at rate 1. The parameter at the root after
/// each step, and how many were in.
struct followed {
    std::vector<float> parameters;
    std::vector<int> contributors;

    friend bool operator==(const followed&, const followed&) = default;
};

template <class Plan>
followed follow(const Plan& plan, std::size_t steps) {
    followed result;
    simulated::run(ranks, {}, [&](auto& net) {
        auto bound = plan.bind(net, one_layer);
        CHECK(bound.contributes() == (net.rank() != 0 || plan.root_contributes));
        std::vector<float> parameters(1), gradient(1);
        const auto compute = [&] {
            net.sleep_until(net.now() + milliseconds(10 * net.rank()));
            gradient[0] = static_cast<float>(1 << net.rank());
            return 0.0;
        };
        while (const auto record = bound.step(std::span(parameters), std::span(gradient), 0, compute)) {
            if (!bound.is_root()) continue;
            result.parameters.push_back(-parameters[0]);
            result.contributors.push_back(record.exchange.contributors);
            CHECK(record.step + 1 == result.parameters.size());
            CHECK(bound.latest().in.size() == static_cast<std::size_t>(record.exchange.contributors));
            if (result.parameters.size() == steps) bound.end();
        }
    });
    return result;
}

template <class... Policies>
auto plan_of(const Policies&... policies) {
    return train::partial_bsp{topology::star{}, policies..., train::sgd{}, train::constant_rate{1}};
}

}  // namespace

TEST_CASE("partial_bsp: follows the mean of those that came") {
    CHECK(follow(plan_of(straggler::wait_all{}), 2) == followed{{14.0F / 3, 28.0F / 3}, {3, 3}});
    CHECK(follow(plan_of(straggler::fastest{2}), 1) == followed{{3}, {2}});
    CHECK(follow(plan_of(straggler::until{.after = milliseconds(15)}), 1) == followed{{2}, {1}});
}

TEST_CASE("partial_bsp: the root contributes where it is told to") {
    auto plan = plan_of(straggler::tolerate{2});
    CHECK(follow(plan, 1) == followed{{2}, {1}});
    plan.root_contributes = true;
    CHECK(follow(plan, 1) == followed{{1.5F}, {2}});
}

TEST_CASE("partial_bsp: a completion that waits for no child trains nothing, and is refused") {
    const auto refused = [](int size, const auto& plan) {
        bool is_refused = false;
        simulated::run(size, {}, [&](simulated::endpoint& net) {
            try {
                plan.template bind<float>(net, one_layer);
            } catch (const contract_violation& told) {
                is_refused = true;
                CHECK(std::string(told.what()).find("nothing would be trained") != std::string::npos);
            }
        });
        return is_refused;
    };
    CHECK(refused(3, plan_of(straggler::tolerate{2})));
    CHECK(refused(1, plan_of(straggler::wait_all{})));
    CHECK_FALSE(refused(4, plan_of(straggler::tolerate{2})));
    auto plan = plan_of(straggler::tolerate{3});
    plan.root_contributes = true;
    CHECK_FALSE(refused(1, plan));
}

TEST_CASE("partial_bsp: clips each gradient, and gives the rate the number of the step") {
    const train::partial_bsp plan{topology::star{},   straggler::wait_all{},
                                  train::sgd{},       train::step_decay{.initial = 1, .factor = 0.5},
                                  straggler::fresh{}, train::clip_value{.most = 3}};
    CHECK(follow(plan, 2) == followed{{8.0F / 3, 4}, {3, 3}});  // 2, 3 and 3
}

TEST_CASE("partial_bsp: a trainer learns along a tree, and ends on all ranks when the root does") {
    const train::partial_bsp plan{topology::tree{2}, straggler::wait_all{}, with_momentum, rate};
    std::vector<double> first(ranks), last(ranks);
    std::vector<std::uint64_t> steps(ranks);
    on_transports(ranks, [&](auto& net) {
        auto trainer = make_trainer(net, plan);
        const auto rank = static_cast<std::size_t>(net.rank());
        first[rank] = last[rank] = 0;
        while (const train::step_record record = trainer.step()) {
            (record.step < 5 ? first : last)[rank] += record.step < 5 || record.step >= 35 ? record.loss : 0;
            if (trainer.step_number() == 40) trainer.end();
        }
        steps[rank] = trainer.step_number();
        CHECK(trainer.step().is_over);
    });
    CHECK(steps == std::vector<std::uint64_t>(ranks, 40));
    CHECK(first[0] == 0);  // a master
    for (std::size_t rank = 1; rank < ranks; ++rank) CHECK(last[rank] < 0.75 * first[rank]);
}

TEST_CASE("partial_bsp: a gradient that is not finite is left out, and its rank knows") {
    std::vector<std::vector<train::step_record>> records(ranks);
    const train::partial_bsp plan{topology::star{}, straggler::wait_all{}, with_momentum, rate};
    on_transports(ranks, [&](auto& net) {
        auto& own = records[static_cast<std::size_t>(net.rank())];
        own.clear();
        auto trainer = make_trainer(net, plan, {{.rank = 2, .step = 1, .coordinate = 7}});
        while (const train::step_record record = trainer.step()) {
            own.push_back(record);
            if (trainer.step_number() == 3) trainer.end();
        }
    });
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        REQUIRE(records[rank].size() == 3);
        for (std::size_t step = 0; step < 3; ++step) CHECK(records[rank][step].skipped() == (rank == 2 && step == 1));
    }
    CHECK(records[2][1].invalid == std::vector<train::invalid_gradient>{{2, 7}});
    CHECK(records[0][0].exchange.contributors == 3);
    CHECK(records[0][1].exchange.contributors == 2);
}

TEST_CASE("partial_bsp: resumes from files whose parameters differ between ranks, bit for bit") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
    const train::partial_bsp plan{topology::star{}, straggler::wait_all{}, with_momentum, rate};
    std::vector<float> through, resumed;
    std::vector<std::uint64_t> numbers;
    simulated::run(ranks, {}, [&](auto& net) {
        auto trainer = make_trainer(net, plan);
        while (trainer.step()) {
            if (trainer.step_number() == 4) {
                train::checkpoint::writer out;
                trainer.save(out, "");
                out.save(path(net.rank()));
            }
            if (trainer.step_number() == 8) trainer.end();
        }
        if (net.rank() == 0) through = copy_of_parameters(trainer);
    });
    simulated::run(ranks, {}, [&](auto& net) {
        auto trainer = make_trainer(net, plan);
        trainer.restore(train::checkpoint::load(path(net.rank())), "");
        while (const auto record = trainer.step()) {
            if (net.rank() == 1) numbers.push_back(record.step);
            if (trainer.step_number() == 8) trainer.end();
        }
        if (net.rank() == 0) resumed = copy_of_parameters(trainer);
    });
    CHECK(resumed == through);
    CHECK(numbers == std::vector<std::uint64_t>{4, 5, 6, 7});
}

TEST_CASE("partial_bsp: once a run has ended, all ranks have files of the same step, also those that are late") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
    const train::partial_bsp plan{topology::tree{}, straggler::fastest{1}, with_momentum, rate};
    std::vector<float> half, whole;
    std::vector<std::uint64_t> ended(ranks);
    const auto run = [&](std::uint64_t last, bool restores, std::vector<float>& reached) {
        simulated::run(ranks, {}, [&](auto& net) {
            const auto own = static_cast<std::size_t>(net.rank());
            auto trainer = make_trainer(net, plan);
            if (restores) {
                trainer.restore(train::checkpoint::open(path(net.rank())), "");
                if (net.rank() == 0) CHECK(copy_of_parameters(trainer) == half);
            }
            std::uint64_t made = 0;
            const bool is_late = net.rank() == ranks - 1;
            while (trainer.step()) {
                ++made;
                if (is_late) net.sleep_until(net.now() + seconds(1));
                if (trainer.step_number() == last) trainer.end();
            }
            CHECK((made < (restores ? 4 : last)) == is_late);
            ended[own] = trainer.step_number();
            train::checkpoint::writer out;
            trainer.save(out, "");
            out.save(path(net.rank()));
            if (net.rank() == 0) reached = copy_of_parameters(trainer);
        });
        CHECK(ended == std::vector<std::uint64_t>(ranks, last));
    };
    run(4, false, half);
    run(8, true, whole);
    CHECK(half != whole);
}

TEST_CASE("partial_bsp: goes back to a file between two steps, also on a rank that has missed some") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
    const train::partial_bsp plan{topology::star{}, straggler::fastest{2}, with_momentum, rate};
    std::vector<float> first, again;
    std::vector<std::uint64_t> numbers(ranks);
    simulated::run(ranks, {}, [&](auto& net) {
        auto trainer = make_trainer(net, plan);
        train::checkpoint::writer out;
        trainer.save(out, "");
        out.save(path(net.rank()));
        const auto run_to = [&](std::uint64_t end) {
            std::uint64_t made = 0;
            for (; trainer.step_number() < end; ++made) {
                if (net.rank() == 2 && trainer.step_number() < 20) net.sleep_until(net.now() + microseconds(100));
                trainer.step();
            }
            CHECK((made < end) == (net.rank() == 2));
        };
        run_to(40);
        if (net.rank() == 0) first = copy_of_parameters(trainer);
        trainer.restore(train::checkpoint::load(path(net.rank())), "");
        CHECK(trainer.step_number() == 0);
        run_to(40);
        if (net.rank() == 0) again = copy_of_parameters(trainer);
        numbers[static_cast<std::size_t>(net.rank())] = trainer.step_number();
    });
    CHECK_FALSE(first.empty());
    CHECK(first == again);
    CHECK(numbers == std::vector<std::uint64_t>(ranks, 40));
}

TEST_CASE("partial_bsp: a rank that catches an exception of its model makes the same step again") {
    for (const rank_t thrower : {0, 2}) {
        auto plan = train::partial_bsp{topology::star{}, straggler::wait_all{}, with_momentum, rate};
        plan.root_contributes = true;
        simulated::run(ranks, {}, [&](auto& net) {
            auto bound = plan.bind(net, one_layer);
            std::vector<float> parameters(1), gradient(1);
            bool throws = net.rank() == thrower;
            const auto compute = [&] {
                if (std::exchange(throws, false)) throw std::runtime_error("a damaged batch");
                gradient[0] = 1;
                return 0.0;
            };
            const auto step = [&] { return bound.step(std::span(parameters), std::span(gradient), 0, compute); };
            if (throws) {
                CHECK_THROWS_WITH_AS(step(), "a damaged batch", std::runtime_error);
                CHECK_THROWS_AS(bound.resume_at(0), contract_violation);
            }
            for (std::uint64_t number = 0; number < 3; ++number) {
                const auto record = step();
                CHECK(record.step == number);
                if (bound.is_root()) CHECK(record.exchange.contributors == ranks);
            }
            if (bound.is_root() && thrower == 0) {  // the run ends in a round that has begun
                throws = true;
                CHECK_THROWS_AS(step(), std::runtime_error);
            }
            bound.end();
            while (step()) CHECK_FALSE(bound.is_root());
        });
    }
}

TEST_CASE("partial_bsp: all ranks refuse an infinite rate before they compute") {
    check_infinite_rate(train::partial_bsp{topology::star{}, straggler::wait_all{}, train::sgd{}, infinite});
}
