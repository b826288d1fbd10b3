// Learning rates as functions of the step, `0, 1, 2, …`.
#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/text.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A learning rate for each step: a value, a pure function.
template <class S>
concept RateSchedule = Regular<S> && requires(const S& schedule, std::uint64_t step) {
    { schedule.rate(step) } -> std::same_as<double>;
};

/// The rate of a step. Throws `contract_violation` if it is not finite in `T`, the type of the parameters, before it
/// makes them so.
template <std::floating_point T = double, RateSchedule S>
double rate_at(const S& schedule, std::uint64_t step) {
    const double rate = schedule.rate(step);
    if (!std::isfinite(static_cast<T>(rate)))
        rill::detail::require_option(false, text_of({"train: the rate of step ", step}), rate,
                                     std::isfinite(rate) ? "finite in the type of the parameters" : "finite");
    return rate;
}

/// The same rate for every step.
struct constant_rate {
    static constexpr const char* name = "constant_rate";

    double value = 0.1;

    constexpr double rate(std::uint64_t) const { return value; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("value", value);
    }
    friend constexpr bool operator==(const constant_rate&, const constant_rate&) = default;
};

/// `initial · factor^⌊step / every⌋`.
struct step_decay {
    static constexpr const char* name = "step_decay";

    double initial = 0.1;
    double factor = 0.1;
    std::uint64_t every = 1;

    double rate(std::uint64_t step) const {
        rill::detail::require_option(every > 0, "train::step_decay: every", every, "at least 1");
        rill::detail::require_option(std::isfinite(factor), "train::step_decay: factor", factor, "finite");
        const std::uint64_t decays = step / every;
        return initial * std::pow(factor, static_cast<double>(decays));
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("initial", initial);
        visit("factor", factor);
        visit("every", every);
    }
    friend constexpr bool operator==(const step_decay&, const step_decay&) = default;
};

/// `c1 / (step + c2)`, the rate under which SGD converges on strongly convex objectives.
struct inverse_time {
    static constexpr const char* name = "inverse_time";

    double c1 = 1;
    double c2 = 10;

    constexpr double rate(std::uint64_t step) const { return c1 / (static_cast<double>(step) + c2); }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("c1", c1);
        visit("c2", c2);
    }
    friend constexpr bool operator==(const inverse_time&, const inverse_time&) = default;
};

/// Linear from `peak / warmup` to `peak` in the first `warmup` steps, then half a cosine down to `floor` at step
/// `total`, where it stays.
struct warmup_cosine {
    static constexpr const char* name = "warmup_cosine";

    double peak = 0.1;
    double floor = 0;
    std::uint64_t warmup = 0;
    std::uint64_t total = 1;

    double rate(std::uint64_t step) const {
        rill::detail::require_option(std::isfinite(floor), "train::warmup_cosine: floor", floor, "finite");
        if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
        if (step >= total) return floor;
        const double progress = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
        return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("peak", peak);
        visit("floor", floor);
        visit("warmup", warmup);
        visit("total", total);
    }
    friend constexpr bool operator==(const warmup_cosine&, const warmup_cosine&) = default;
};

static_assert(RateSchedule<constant_rate>);
static_assert(RateSchedule<step_decay>);
static_assert(RateSchedule<inverse_time>);
static_assert(RateSchedule<warmup_cosine>);

}}}  // namespace rill::RILL_ABI::train
