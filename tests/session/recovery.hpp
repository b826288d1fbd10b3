// Steps of ranks that die, and the checks that must hold in every case.
#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/session/survivors.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

namespace recovery {

constexpr rill::duration timeout = rill::seconds(5);

/// What one rank recorded: the result of each step, and the members of that step.
struct witness {
    std::vector<double> results;
    std::vector<std::vector<rill::rank_t>> members;
    std::string error;
    bool has_ended = false;
};

/// A number per step and rank from which the mean over any set of ranks can be recognised.
constexpr double given(int step, rill::rank_t rank) { return 1000.0 * step + (1 << rank); }

inline double mean_over(int step, const std::vector<rill::rank_t>& members) {
    double sum = 0;
    for (const rill::rank_t rank : members) sum += given(step, rank);
    return sum / static_cast<double>(members.size());
}

/// Computes in each step the mean over the ranks that live.
template <class Shape, class Net>
void take_steps(Net& net, int steps, witness& own) {
    try {
        rill::survivors alive{net, timeout};
        for (int step = 0; step < steps; ++step) {
            const std::vector<double> mine(37, given(step, net.rank()));
            std::vector<double> mean(37);
            alive.run([&](auto& members) {
                rill::group all{members, Shape{}, {.timeout = timeout}};
                rill::all_reduce(all, mine, mean, rill::aggregate::mean{});
            });
            own.results.push_back(mean[36]);
            own.members.push_back(alive.view().members);
        }
    } catch (const rill::error& thrown) {
        own.error = thrown.what();
    }
    own.has_ended = true;
}

/// What does not hold; empty if all is well. Every rank that lives has each step's mean over its members. All ranks
/// that live are members, and have the same members and the same result.
inline std::string wrong_with(const std::vector<witness>& ranks, int steps) {
    const witness* first = nullptr;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const witness& own = ranks[rank];
        const std::string name = "rank " + std::to_string(rank);
        if (!own.error.empty()) return name + " throws: " + own.error;
        for (std::size_t step = 0; step < own.results.size(); ++step)
            if (std::abs(own.results[step] - mean_over(static_cast<int>(step), own.members[step])) > 1e-9)
                return name + " has a wrong sum in step " + std::to_string(step);
        if (!own.has_ended) continue;
        if (own.results.size() != static_cast<std::size_t>(steps)) return name + " lacks a step";
        if (first == nullptr) first = &own;
        if (own.results != first->results || own.members != first->members) return name + " differs from the first";
        for (const auto& members : own.members)
            if (std::find(members.begin(), members.end(), static_cast<int>(rank)) == members.end())
                return name + " lives and is excluded";
    }
    return {};
}

/// Plays `steps` steps of `ranks` ranks in a network.
template <class Shape>
std::string play(int ranks, int steps, const rill::simulated::network& net_of_all) {
    std::vector<witness> seen(static_cast<std::size_t>(ranks));
    std::string wrong;
    try {
        rill::simulated::run(ranks, net_of_all, [&](auto& net) {
            take_steps<Shape>(net, steps, seen[static_cast<std::size_t>(net.rank())]);
        });
        wrong = wrong_with(seen, steps);
    } catch (const std::exception& e) {
        wrong = std::string("the run ends by ") + e.what();
    }
    if (wrong.empty()) return wrong;
    return std::to_string(ranks) + " ranks, seed " + std::to_string(net_of_all.seed) + ", " +
           to_string(net_of_all.faults) + ": " + wrong + "\n";
}

}  // namespace recovery
