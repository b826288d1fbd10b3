#include "coded.hpp"

#include "code.hpp"
#include "stragglers.hpp"
#include "text.hpp"

#include <rill/cost/coded_tree_plan.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace plan {

namespace {

namespace cost = rill::cost;

/// The model counts the whole data as one point; without coding, each rank has one of `ranks` parts of it.
cost::step_model model_of(const arguments& chosen) {
    const double tail = exponential_share(chosen);
    const double all = chosen.compute * chosen.ranks;
    return {.least_per_point = all * (1 - tail),
            .tail_per_point = all * tail,
            .message = chosen.bandwidth > 0 ? static_cast<double>(4 * chosen.model_size) / chosen.bandwidth : 0,
            .latency = chosen.latency};
}

void print_row(const cost::planned_step& step, const char* why) {
    const bool is_ring = step.name == "ring";
    const auto number = [&](int value) { return is_ring ? "-" : std::to_string(value); };
    std::printf("%-21s %6s %6s %10s %9.4f %13s %13s%s\n", step.name.c_str(), number(step.plan.width).c_str(),
                number(step.plan.depth).c_str(), number(step.plan.missing).c_str(), step.plan.load,
                time_text(step.formula).c_str(), time_text(step.simulated.mean).c_str(), why);
}

}  // namespace

void print_coded(const arguments& chosen) {
    const cost::step_model model = model_of(chosen);
    const cost::coded_tree_plan found = cost::plan_coded_tree(model, chosen.ranks, {.steps = 400, .seed = chosen.seed});
    std::printf("%d workers and a master; a gradient takes its receiver %s, latency %s\n", chosen.ranks,
                time_text(model.message).c_str(), time_text(model.latency).c_str());
    std::printf("computing: %s a step without redundancy, of which %s are exponential\n",
                time_text(chosen.compute).c_str(),
                percent(model.tail_per_point / chosen.ranks / chosen.compute).c_str());
    std::printf("times of all but the ring include the way of the model down to the workers\n\n");
    std::printf("%-21s %6s %6s %10s %9s %13s %13s\n", "", "width", "depth", "tolerates", "load", "by formula",
                "simulated");
    for (const cost::planned_step& step : found.coded) print_row(step, "");
    for (const cost::planned_step& step : found.uncoded) print_row(step, "");
    print_row(found.ignoring, " not the whole gradient");
    std::printf("\n%s\n", found.reason.c_str());
    const cost::gather_plan& best = found.best_coded().plan;
    std::printf("\nThe best that is coded, in C++:\n\n%s", code_of_coded(best.width, best.depth, best.missing).c_str());
}

}  // namespace plan
