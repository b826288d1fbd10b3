#pragma once

#include <rill/core/contract.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// A model of the time of a step of distributed gradient descent, in seconds.
///
/// A worker that computes on x points takes x · (`least_per_point` + an exponential time of mean `tail_per_point`),
/// with one draw for the whole x. A gradient arrives `latency` after it was sent, waits until its receiver has taken
/// those that arrived earlier, and then occupies the receiver for `message`.
///
/// Source: CodedReduce, section III-C: a = `least_per_point`, 1/μ = `tail_per_point`, t_c = `message`. The paper has no
/// latency. As in the paper, decoding and updating take no time, and neither does sending the model to the workers
/// unless `sends_model` is set.
///
/// With `sends_model`, each parent sends the model to its children one after the other, as long as a gradient each. A
/// worker begins to compute when it has the model. A parent sends nothing else before its last child's model, neither
/// its own gradient nor the model of the next step.
struct step_model {
    double points = 1;  ///< number of points of the whole data set
    double least_per_point = 0;
    double tail_per_point = 0;
    double message = 0;
    double latency = 0;
    bool sends_model = false;  ///< whether the way of the model to the workers of a `gather_plan` counts too

    friend bool operator==(const step_model&, const step_model&) = default;
};

/// How gradients come to a master: a regular tree (a star if `depth` is 1), each of whose parents goes on without the
/// last `missing` of its children.
struct gather_plan {
    int width = 1;
    int depth = 1;
    int missing = 0;
    double load = 1;  ///< the part of the points that each worker computes on

    int waits_for() const { return width - missing; }
    long long workers() const {
        long long all = 0, layer = 1;
        for (int l = 0; l < depth; ++l) all += layer *= width;
        return all;
    }
    /// Throws `contract_violation` unless there are children and each parent waits for at least one of its own.
    void require_children() const {
        RILL_EXPECTS(depth > 0 && 0 <= missing && missing < width,
                     "cost::gather_plan: the depth is at least 1, and a parent waits for at least one of its "
                     "children");
    }
    friend bool operator==(const gather_plan&, const gather_plan&) = default;
};

/// Plan in which all workers send to the master, which waits for all.
inline gather_plan master_worker(int workers) { return {.width = workers, .load = 1.0 / workers}; }

/// Plan in which all workers send to the master, which ignores the slowest `missing`. Their part of the gradient is
/// lost.
inline gather_plan ignoring_slowest(int workers, int missing) {
    return {.width = workers, .missing = missing, .load = 1.0 / workers};
}

/// Plan of a gradient code over a tree, with the least possible load: (n/(s+1) + … + (n/(s+1))^L)^-1 of the points,
/// which is (s+1)/n for gradient coding at one master. Source: CodedReduce, Theorem 1.
inline gather_plan coded_tree(int width, int depth, int stragglers) {
    RILL_EXPECTS(width > 0 && depth > 0, "coded_tree: width and depth are at least 1");
    RILL_EXPECTS(0 <= stragglers && stragglers < width,
                 "coded_tree: stragglers are at least 0 and fewer than the children of a parent");
    double sum = 0, power = 1;
    for (int layer = 0; layer < depth; ++layer) sum += power *= static_cast<double>(width) / (stragglers + 1);
    return {.width = width, .depth = depth, .missing = stragglers, .load = 1 / sum};
}

/// Returns 1 + 1/2 + … + 1/n; an asymptotic series for n > 1000.
inline double harmonic(long long n) {
    if (n > 1000) {
        const auto x = static_cast<double>(n);
        return std::log(x) + 0.57721566490153286 + 1 / (2 * x) - 1 / (12 * x * x);
    }
    double sum = 0;
    for (long long i = n; i > 0; --i) sum += 1 / static_cast<double>(i);
    return sum;
}

/// Returns the mean time until `arrived` of `workers` have computed: load · d · (a + (H_n − H_{n−arrived}) / μ).
inline double compute_time(const step_model& model, double load, long long workers, long long arrived) {
    return load * model.points *
           (model.least_per_point + model.tail_per_point * (harmonic(workers) - harmonic(workers - arrived)));
}

namespace detail {

/// Returns the chance that at least `least` of n independent events occur, each with chance p.
inline double at_least(int n, int least, double p) {
    if (p >= 1) return 1;
    if (p <= 0) return least == 0 ? 1 : 0;
    const double odds = std::log(p) - std::log1p(-p);
    double exactly = n * std::log1p(-p), sum = 0;  // log of the chance of exactly i of n
    for (int i = 0; i < least; ++i) {
        sum += std::exp(exactly);
        exactly += odds + std::log(static_cast<double>(n - i) / (i + 1));
    }
    return std::max(0.0, 1 - sum);
}

/// Returns the mean time until the master of a tree has what it waits for, if gradients take no time and each worker an
/// exponential time of mean 1. At depth 1 it is H_n - H_s; at larger depths, an integral over the chance that the tree
/// is not done.
inline double tree_wait(const gather_plan& plan) {
    if (plan.depth == 1) return harmonic(plan.width) - harmonic(plan.missing);
    const double step = 0.02;
    double sum = 0;
    for (double time = step / 2;; time += step) {
        const double own = -std::expm1(-time);
        double done = own;
        for (int layer = 1; layer < plan.depth; ++layer) done = own * at_least(plan.width, plan.waits_for(), done);
        const double waiting = 1 - at_least(plan.width, plan.waits_for(), done);
        sum += waiting * step;
        if (waiting < 1e-4 && done > 0.5) return sum;
    }
}

}  // namespace detail

/// Returns the expected time of a step of a gather by formula.
///
/// It is the largest of three times. The first is that of all computations that are waited for, plus one gradient per
/// layer. The second is that of the lowest layer with the queue after each of its computations, plus one queue per
/// higher layer, of gradients that arrive together. The third, if the model is sent too, is that until the
/// last parents have sent it.
///
/// Mostly within 10 % of the simulated mean; within 25 % if computing and queues take about equally long. Cost: O(width
/// · depth) for some hundred points of an integral. Source: the order statistics of CodedReduce, appendix D; the queues
/// are ours.
inline double expected_time(const step_model& model, const gather_plan& plan) {
    plan.require_children();
    const int n = plan.width, waits = plan.waits_for();
    const double own = plan.load * model.points;
    const double down = model.sends_model ? model.message : 0;
    const double latencies = model.latency * (model.sends_model ? 2 : 1);
    // How many children have got the model when the j-th to be done has: j if all compute equally long. If random times
    // are far longer than the sending, any child may be the j-th, and the mean counts.
    const double spread = own * model.tail_per_point;
    const double chance = down > 0 ? spread / (spread + n * down) : 0;
    const auto place = [&](int j) { return (1 - chance) * j + chance * (n + 1) / 2; };
    double last_layer = 0, sum = 0;  // sum: 1/n + 1/(n-1) + …
    for (int j = 1; j <= waits; ++j) {
        sum += 1.0 / (n - j + 1);
        last_layer = std::max(last_layer, own * (model.least_per_point + model.tail_per_point * sum) + place(j) * down +
                                              (waits - j + 1) * model.message);
    }
    const double queues = last_layer + latencies + (plan.depth - 1) * (latencies + down + waits * model.message);
    const double tail = model.tail_per_point > 0 ? model.tail_per_point * detail::tree_wait(plan) : 0;
    const double waiting =
        own * (model.least_per_point + tail) + plan.depth * (latencies + place(waits) * down + model.message);
    const double sending = n * down + (plan.depth - 1) * (latencies + (waits + 1) * down);
    return std::max({queues, waiting, sending});
}

/// Returns CodedReduce's upper bound (r d/μ) log(n/s) + a r d + n L t_c, plus the latency of each layer; infinite if
/// `missing` is 0. Ignores `sends_model`. Source: Theorem 2, where it holds up to terms that vanish for large n.
inline double upper_bound(const step_model& model, const gather_plan& plan) {
    if (plan.missing == 0) return std::numeric_limits<double>::infinity();
    return plan.load * model.points *
               (model.least_per_point +
                model.tail_per_point * std::log(static_cast<double>(plan.width) / plan.missing)) +
           plan.depth * (plan.width * model.message + model.latency);
}

/// Returns the limit of CodedReduce's lower bound for large n: (r d/μ) log(n/s) + a r d + (n - s + L - 1) t_c, plus the
/// latency of each layer; infinite if `missing` is 0. Its terms of o(n) are left out, so that it is no bound for small
/// n. Ignores `sends_model`. Source: Theorem 2.
inline double lower_trend(const step_model& model, const gather_plan& plan) {
    if (plan.missing == 0) return std::numeric_limits<double>::infinity();
    return plan.load * model.points *
               (model.least_per_point +
                model.tail_per_point * std::log(static_cast<double>(plan.width) / plan.missing)) +
           (plan.waits_for() + plan.depth - 1) * model.message + plan.depth * model.latency;
}

/// Returns the expected time of a step with a ring all_reduce, which waits for the slowest worker and then sends 2(N-1)
/// messages of 1/N of a gradient, one after the other. All workers have the model then, so that `sends_model` changes
/// nothing. (CodedReduce states no model of it.)
inline double expected_ring_time(const step_model& model, int workers) {
    return compute_time(model, 1.0 / workers, workers, workers) +
           2.0 * (workers - 1) * (model.message / workers + model.latency);
}

}}}  // namespace rill::RILL_ABI::cost
