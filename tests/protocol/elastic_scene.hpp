// Steps of an elastic team whose ranks die, come back, and are cut off; and what must hold in every case.
#pragma once

#include <rill/collective/all_reduce.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace elastic_scene {

/// A sum of all updates, and how many there were: wrong if one is missing, applied twice, or out of order.
struct model {
    std::vector<double> values = std::vector<double>(20, 0.0);
    double steps = 0;
    std::vector<double> latest = std::vector<double>(20, 0.0);

    void add(const std::vector<double>& update) {
        latest = update;
        ++steps;
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = values[i] * 0.5 + update[i] + steps;
    }
    rill::buffer pack() const {
        std::vector<double> all = values;
        all.push_back(steps);
        return bytes_of(all);
    }
    rill::buffer changes() const { return bytes_of(latest); }
    void unpack(rill::byte_view bytes) {
        std::vector<double> all = doubles_of(bytes, values.size() + 1);
        steps = all.back();
        all.pop_back();
        values = std::move(all);
    }
    void apply(rill::byte_view bytes) { add(doubles_of(bytes, values.size())); }

    static rill::buffer bytes_of(const std::vector<double>& of) {
        rill::buffer bytes(of.size() * sizeof(double));
        std::memcpy(bytes.data(), of.data(), bytes.size());
        return bytes;
    }
    static std::vector<double> doubles_of(rill::byte_view bytes, std::size_t count) {
        if (bytes.size() != count * sizeof(double)) throw std::runtime_error("a model of another size");
        std::vector<double> all(count);
        std::memcpy(all.data(), bytes.data(), bytes.size());
        return all;
    }
    friend bool operator==(const model& a, const model& b) { return a.values == b.values && a.steps == b.steps; }
};

/// What one life of a rank has seen.
struct life {
    rill::rank_t rank = rill::no_rank;
    bool has_ended = false;    ///< it was not killed
    bool is_excluded = false;  ///< or found no quorum
    bool is_late = false;      ///< it came when all was over
    bool has_met = false;      ///< it has known a view
    std::string why{};
    std::string error{};
    model at_the_end{};
};

struct record {
    std::vector<life> lives{};
    /// Of each step: what was committed, and by whom.
    std::map<std::uint64_t, std::pair<double, std::vector<rill::rank_t>>> committed{};
    std::uint64_t commits = 0, repeats = 0, taken_in = 0, altered = 0;
    std::string wrong{};

    void complain(const std::string& what) {
        if (wrong.empty()) wrong = what;
    }
};

constexpr double given(std::uint64_t step, rill::rank_t rank) {
    return 1000.0 * static_cast<double>(step) + static_cast<double>(1 << rank);
}

/// One life of a rank: takes steps until there are `steps`. The rank `altered` damages its state once, when a view has
/// ended, so that the next one begins with states that differ.
template <class Net>
void live(Net& net, std::uint64_t steps, const rill::elastic_options& options, record& all,
          rill::rank_t altered = rill::no_rank) {
    const std::size_t own = all.lives.size();
    all.lives.push_back({.rank = net.rank()});
    model state;
    try {
        rill::elastic team{net, rill::topology::ring{}, options};
        all.lives[own].has_met = true;
        const bool is_new = !team.is_member();
        bool is_to_alter = net.rank() == altered;
        while (team.step() < steps) {
            const rill::view crew = team.settle(state);
            if (static_cast<double>(team.step()) != state.steps)
                all.complain("rank " + std::to_string(net.rank()) + " has a state of another step");
            if (team.step() >= steps) break;
            net.sleep_until(net.now() + rill::microseconds(100));  // computes
            const std::vector<double> mine(20, given(team.step(), net.rank()));
            std::vector<double> sum(20);
            const std::uint64_t step = team.step();
            if (!team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); })) {
                ++all.repeats;
                if (!std::exchange(is_to_alter, false)) continue;
                ++all.altered;
                state.values[3] += 1;
                continue;
            }
            ++all.commits;
            double expected = 0;
            for (const rill::rank_t rank : crew.members) expected += given(step, rank);
            const auto first = all.committed.emplace(step, std::pair(sum[7], crew.members)).first;
            if (first->second != std::pair(sum[7], crew.members)) all.complain("a step has two results");
            if (sum[7] != expected) all.complain("a step's result is not the sum over its members");
            state.add(sum);
        }
        all.taken_in += is_new ? 1U : 0U;
        team.finish();
    } catch (const rill::excluded& thrown) {
        all.lives[own].is_excluded = true;
        all.lives[own].is_late = net.restarts() > 0 && all.committed.size() == steps;
        all.lives[own].why = thrown.what();
    } catch (const rill::no_quorum& thrown) {
        all.lives[own].is_excluded = true;
        all.lives[own].why = thrown.what();
    } catch (const rill::error& thrown) {
        all.lives[own].error = thrown.what();
        if (all.altered == 0 && dynamic_cast<const rill::mismatch*>(&thrown) != nullptr)
            all.complain("states differ, and nobody has damaged one");
        // Who comes when all is over finds nobody.
        const std::string& said = all.lives[own].error;
        const auto says = [&](const char* what) { return said.find(what) != std::string::npos; };
        const bool is_alone = says("all others have ended") || says("no member has answered") ||
                              says("have not come within") || says("is not taken in") || says("has not got the state");
        if (net.restarts() > 0 && is_alone) all.lives[own] = {.rank = net.rank(), .is_excluded = true, .is_late = true};
    }
    all.lives[own].has_ended = true;
    all.lives[own].at_the_end = state;
}

/// What does not hold; empty if all is well. `may_fail`: whether ranks may end with an error.
inline std::string wrong_with(const record& all, std::uint64_t steps, bool may_fail) {
    if (!all.wrong.empty()) return all.wrong;
    // Until all have met, the end of one is an error on the others.
    for (const life& each : all.lives) may_fail |= !each.has_ended && !each.has_met;
    const life* first = nullptr;
    for (const life& each : all.lives) {
        if (!each.has_ended) continue;
        const std::string name = "rank " + std::to_string(each.rank);
        const bool met_nobody = each.error.find("of the first view") != std::string::npos ||
                                each.error.find("before the first view") != std::string::npos;
        if (!may_fail && !each.error.empty() && !met_nobody) return name + " throws: " + each.error;
        if (!may_fail && each.is_excluded && !each.is_late) return name + " is left out: " + each.why;
        if (each.is_excluded || !each.error.empty()) continue;
        if (each.at_the_end.steps != static_cast<double>(steps)) return name + " lacks a step";
        if (first == nullptr) first = &each;
        if (!(each.at_the_end == first->at_the_end)) return name + " ends with another state";
    }
    return {};
}

}  // namespace elastic_scene
