#pragma once

#include <rill/core/contract.hpp>
#include <rill/cost/readable_seconds.hpp>
#include <rill/cost/simulate_step.hpp>
#include <rill/cost/step_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// A way to add up gradients, and the time of a step with it, which for a tree includes the way of the model down to
/// the workers. Times are in seconds.
struct planned_step {
    std::string name;  ///< "coded tree", "gradient coding", "master-worker", "tree", "ring", "ignoring the slowest"
    gather_plan plan;  ///< for a ring, only the load has a meaning
    double formula = 0;
    sampled_time simulated;
};

/// What `plan_coded_tree` found. Times are simulated means, except those called formulas.
struct coded_tree_plan {
    /// Each depth's tree with its best tolerance, the fastest first. The tree of depth 1 is gradient coding at one
    /// master.
    std::vector<planned_step> coded;
    /// Exact ways without redundancy, the fastest first: master-worker, trees that wait for all children, the ring.
    std::vector<planned_step> uncoded;
    /// Not exact: the master ignores as many workers as the best coded tree tolerates in total.
    planned_step ignoring;
    /// The message latency, in seconds, from which on the best coded way is faster than the ring; 0 if it is faster at
    /// any latency.
    double pays_from_latency = 0;
    /// The multiple of the given mean of the exponential part from which on coding is the fastest by formula; 0 if no
    /// multiple up to 10,000 is enough.
    double pays_from_tail = 0;
    std::string reason;  ///< one text: what to take, how much faster it is, and when that would change

    const planned_step& best_coded() const { return coded.front(); }
    const planned_step& best_uncoded() const { return uncoded.front(); }
    bool coding_pays() const { return best_coded().simulated.mean < best_uncoded().simulated.mean; }
};

namespace detail {

/// Returns the width of the largest regular tree of depth `depth` with at most `workers` workers; less than 2 if there
/// is none.
inline int widest(int workers, int depth) {
    int width = 1;
    while (gather_plan{.width = width + 1, .depth = depth}.workers() <= workers) ++width;
    return width;
}

/// Returns the tolerances to compare: all from 1 on for small widths, else some sixty.
inline std::vector<int> tolerances(int width) {
    std::vector<int> all;
    for (int s = 1; s < width; s += std::max(1, s < 16 ? 1 : width / 48)) all.push_back(s);
    return all;
}

inline gather_plan best_tolerance(const step_model& model, int width, int depth) {
    gather_plan best = coded_tree(width, depth, 1);
    double least = expected_time(model, best);
    for (const int s : tolerances(width)) {
        const gather_plan plan = coded_tree(width, depth, s);
        const double time = expected_time(model, plan);
        if (time < least) {
            best = plan;
            least = time;
        }
    }
    return best;
}

struct best_formulas {
    double coded = 0, uncoded = 0;
};

inline best_formulas compare(const step_model& model, int workers) {
    best_formulas best{HUGE_VAL, expected_ring_time(model, workers)};
    for (int depth = 1; widest(workers, depth) >= 2; ++depth) {
        const int width = widest(workers, depth);
        best.coded = std::min(best.coded, expected_time(model, best_tolerance(model, width, depth)));
        best.uncoded = std::min(best.uncoded, expected_time(model, coded_tree(width, depth, 0)));
    }
    return best;
}

/// Returns the multiple of the tail at which coding becomes the fastest, to 1 %; 0 if it does not.
inline double tail_that_pays(const step_model& model, int workers) {
    const auto pays = [&](double multiple) {
        step_model changed = model;
        changed.tail_per_point *= multiple;
        const best_formulas best = compare(changed, workers);
        return best.coded < best.uncoded;
    };
    double high = 1e4, low = 1e-4;
    if (!pays(high)) return 0;
    if (pays(low)) return low;
    while (high > 1.01 * low) {
        const double middle = std::sqrt(low * high);
        (pays(middle) ? high : low) = middle;
    }
    return high;
}

inline std::string seconds_text(double seconds) {
    const readable_seconds read = readable(seconds);
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %s", read.value, read.unit);
    return text;
}

inline std::string describe(const planned_step& step) {
    std::string text = step.name;
    if (step.name == "coded tree" || step.name == "tree")
        text += " of width " + std::to_string(step.plan.width) + " and depth " + std::to_string(step.plan.depth);
    if (step.plan.missing > 0) text += " that tolerates " + std::to_string(step.plan.missing);
    return text + ", " + seconds_text(step.simulated.mean) + " a step";
}

inline std::string times_text(double factor) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", factor);
    return text;
}

inline std::string reason_of(const coded_tree_plan& plan) {
    const planned_step &coded = plan.best_coded(), &uncoded = plan.best_uncoded();
    const double factor = uncoded.simulated.mean / coded.simulated.mean;
    if (plan.coding_pays())
        return "Coding pays: " + describe(coded) + ", " + times_text(factor) + " times as fast as the best without, " +
               describe(uncoded) + ".";
    std::string text = "Coding does not pay: " + describe(uncoded) + "; the best that is coded, " + describe(coded) +
                       ", takes " + times_text(1 / factor) + " times as long.";
    if (uncoded.name == "ring")
        text +=
            " It beats the ring where a message has a latency of " + seconds_text(plan.pays_from_latency) + " or more.";
    text += plan.pays_from_tail > 0
                ? " Coding becomes the fastest where the tail is " + times_text(plan.pays_from_tail) + " times as long."
                : " A longer tail does not change that.";
    return text;
}

inline bool is_faster(const planned_step& a, const planned_step& b) { return a.simulated.mean < b.simulated.mean; }

}  // namespace detail

/// Plans the tree of least expected time (depth, width and tolerated stragglers per parent) for at most `workers`
/// workers, and compares it with the same workers without coding.
///
/// For each depth it takes the largest regular tree that the workers fill, compares its tolerances (some sixty if there
/// are more) by `expected_time`, and simulates the best one. Loads are those of `cyclic_repetition` and `cyclic_mds`;
/// see `default_code` for the widths at which float messages need a larger load.
///
/// A ring leaves the whole gradient with all workers, a tree only with its master. Therefore the times of trees include
/// the way of the model down to the workers, whether or not `model.sends_model` is set.
inline coded_tree_plan plan_coded_tree(step_model model, int workers, sampling how = {}) {
    RILL_EXPECTS(workers >= 2, "plan_coded_tree: at least two workers");
    const auto times = {model.least_per_point, model.tail_per_point, model.message, model.latency};
    RILL_EXPECTS(model.points > 0 && std::isfinite(model.points),
                 "plan_coded_tree: the number of points is finite and above 0");
    RILL_EXPECTS(std::all_of(times.begin(), times.end(), [](double t) { return t >= 0 && std::isfinite(t); }) &&
                     *std::max_element(times.begin(), times.end()) > 0,
                 "plan_coded_tree: times are finite and not negative, and one of them is above 0");
    model.sends_model = true;
    coded_tree_plan found;
    const auto step = [&](const char* name, const gather_plan& plan) {
        return planned_step{name, plan, expected_time(model, plan), simulate_step(model, plan, how)};
    };
    for (int depth = 1; detail::widest(workers, depth) >= 2; ++depth) {
        const int width = detail::widest(workers, depth);
        found.coded.push_back(
            step(depth == 1 ? "gradient coding" : "coded tree", detail::best_tolerance(model, width, depth)));
        found.uncoded.push_back(step(depth == 1 ? "master-worker" : "tree", coded_tree(width, depth, 0)));
    }
    found.uncoded.push_back(
        {"ring", master_worker(workers), expected_ring_time(model, workers), simulate_ring_step(model, workers, how)});
    std::stable_sort(found.coded.begin(), found.coded.end(), detail::is_faster);
    std::stable_sort(found.uncoded.begin(), found.uncoded.end(), detail::is_faster);

    const gather_plan& best = found.best_coded().plan;
    const int lost = static_cast<int>(static_cast<long long>(workers) * best.missing / best.width);
    found.ignoring = step("ignoring the slowest", ignoring_slowest(workers, lost));
    const auto ring = std::find_if(found.uncoded.begin(), found.uncoded.end(),
                                   [](const planned_step& each) { return each.name == "ring"; });
    const int more_messages = 2 * (workers - 1) - 2 * best.depth;  // that the ring sends one after the other
    const double behind = found.best_coded().simulated.mean - ring->simulated.mean;
    if (more_messages > 0) found.pays_from_latency = std::max(0.0, model.latency + behind / more_messages);
    if (model.tail_per_point > 0) found.pays_from_tail = detail::tail_that_pays(model, workers);
    found.reason = detail::reason_of(found);
    return found;
}

}}}  // namespace rill::RILL_ABI::cost
