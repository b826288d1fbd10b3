#include <rill/train/schedule.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace rill::train;

TEST_CASE("schedule: constant") { CHECK(constant_rate{.value = 0.3}.rate(1000) == 0.3); }

TEST_CASE("schedule: step decay") {
    const step_decay schedule{.initial = 0.8, .factor = 0.5, .every = 10};
    CHECK(schedule.rate(0) == 0.8);
    CHECK(schedule.rate(9) == 0.8);
    CHECK(schedule.rate(10) == doctest::Approx(0.4));
    CHECK(schedule.rate(35) == doctest::Approx(0.1));
}

TEST_CASE("schedule: inverse time") {
    const inverse_time schedule{.c1 = 2, .c2 = 4};
    CHECK(schedule.rate(0) == 0.5);
    CHECK(schedule.rate(4) == 0.25);
}

TEST_CASE("schedule: warm-up, then cosine") {
    const warmup_cosine schedule{.peak = 1, .floor = 0.2, .warmup = 4, .total = 24};
    CHECK(schedule.rate(0) == 0.25);
    CHECK(schedule.rate(3) == 1);
    CHECK(schedule.rate(4) == 1);
    CHECK(schedule.rate(14) == doctest::Approx(0.6));
    CHECK(schedule.rate(23) > 0.2);
    CHECK(schedule.rate(24) == 0.2);
    CHECK(schedule.rate(1000) == 0.2);
    for (std::uint64_t step = 4; step < 24; ++step) CHECK(schedule.rate(step + 1) < schedule.rate(step));
    CHECK(warmup_cosine{.peak = 1, .warmup = 0, .total = 2}.rate(0) == 1);
    CHECK(warmup_cosine{.peak = 1, .floor = 0.1, .warmup = 2, .total = 2}.rate(2) == 0.1);
}

TEST_CASE("schedule: a rate that is not finite is refused, with its step") {
    CHECK(rate_at(inverse_time{.c1 = 2, .c2 = 0}, 1) == 2);
    CHECK_THROWS_WITH_AS(rate_at(inverse_time{.c1 = 2, .c2 = 0}, 0),
                         "rill: train: the rate of step 0 is inf; it must be finite", rill::contract_violation);
    const rill::train::constant_rate large{1e39};
    CHECK(rate_at<double>(large, 3) == 1e39);
    CHECK_THROWS_WITH_AS(rate_at<float>(large, 3),
                         "rill: train: the rate of step 3 is 1e+39; it must be finite in the type of the parameters",
                         rill::contract_violation);
}

TEST_CASE("schedule: options that would make a later rate infinite are refused at the first step") {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH_AS(step_decay{.factor = nan}.rate(0), "rill: train::step_decay: factor is nan; it must be finite",
                         rill::contract_violation);
    const warmup_cosine low{.floor = -std::numeric_limits<double>::infinity(), .warmup = 2, .total = 4};
    CHECK_THROWS_WITH_AS(low.rate(0), "rill: train::warmup_cosine: floor is -inf; it must be finite",
                         rill::contract_violation);
}

TEST_CASE("schedule: a step decay needs at least one step") {
    CHECK_THROWS_AS(rill::train::step_decay{.every = 0}.rate(1), rill::contract_violation);
}
