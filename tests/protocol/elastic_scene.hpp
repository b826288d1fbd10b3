// Steps of an elastic team whose ranks die, come back, and are cut off; and what must hold in every case.
#pragma once

#include <rill/collective/all_reduce.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/protocol/residuals.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <set>
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
    bool begins_later = false;  ///< than the first view
    bool has_left = false;
    bool has_handed_over = false;   ///< its residual, when it left
    std::vector<float> residual{};  ///< as it was when the latest attempt began
    /// Of an attempt whose outcome this rank does not know yet: the residual if its step is committed.
    bool has_tried = false;
    std::uint64_t tried = 0;
    std::uint32_t tried_in = 0;
    std::vector<float> residual_then{};  ///< empty until it has the result
    int commits = 0;
    std::vector<double> norms{};  ///< of the residuals that it has had
    bool has_taken = false;       ///< the residual of another, and completed no step since
};

/// A step that is committed.
struct committed_step {
    double sum = 0;
    std::vector<rill::rank_t> members{};
    std::uint32_t epoch = 0;
    std::vector<float> update{};  ///< what compression has left of the sum of the gradients

    friend bool operator==(const committed_step&, const committed_step&) = default;
};

/// What one rank does beside its steps.
struct part {
    rill::rank_t rank = rill::no_rank;
    enum class act { alters, leaves, pauses } what{};  ///< it damages its state once, when a view has ended
    std::uint64_t step = 0;                            ///< when it leaves, or pauses
    rill::duration pause{};
    bool in_body = false;  ///< it pauses in the attempt, not before

    bool is(act wanted, rill::rank_t of) const { return what == wanted && rank == of; }
};

struct record {
    int first_ranks = 1 << 20;  ///< those that the run was started with
    std::vector<life> lives{};
    std::map<std::uint64_t, committed_step> committed{};
    std::set<std::pair<rill::rank_t, double>> lost{};  ///< residuals that any member has declared as lost: their norms
    std::uint64_t commits = 0, repeats = 0, taken_in = 0, altered = 0, left = 0, handed_over = 0;
    std::uint64_t missed = 0;  ///< results of committed steps that a member lacks, to which it has contributed
    std::string wrong{};
    std::vector<std::uint64_t> first_lives{};  ///< of the first view
    bool begins_anew = false;                  ///< there was a second first view

    void complain(const std::string& what) {
        if (wrong.empty()) wrong = what;
    }
};

constexpr double given(std::uint64_t step, rill::rank_t rank) {
    return 1000.0 * static_cast<double>(step) + static_cast<double>(1 << rank);
}

/// Whole numbers, so that sums are exact.
inline std::vector<float> gradient(std::uint64_t step, rill::rank_t rank) {
    std::vector<float> made(20);
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = static_cast<float>((i * 7 + step * 5 + static_cast<std::size_t>(rank) * 3) % 16);
    return made;
}
inline void add(std::vector<float>& to, const std::vector<float>& more) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}

/// One life of a rank: takes steps until there are `steps`, or until it leaves.
template <class Net>
void live(Net& net, std::uint64_t steps, const rill::elastic_options& options, record& all,
          const std::vector<part>& parts = {}) {
    const std::size_t own = all.lives.size();
    const bool begins_later = net.restarts() > 0 || net.rank() >= all.first_ranks;
    all.lives.push_back({.rank = net.rank(), .begins_later = begins_later});
    model state;
    auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.3}}.bind(20);
    const auto residual = [&] { return std::vector<float>(codec.residual().begin(), codec.residual().end()); };
    const auto mine_is = [&](const part& each, part::act what) { return each.is(what, net.rank()); };
    try {
        rill::elastic team{net, rill::topology::ring{}, options};
        all.lives[own].has_met = true;
        const bool is_new = !team.is_member();
        bool is_to_alter =
            std::any_of(parts.begin(), parts.end(), [&](const part& each) { return mine_is(each, part::act::alters); });
        while (team.step() < steps) {
            if (net.restarts() == 0 && std::any_of(parts.begin(), parts.end(), [&](const part& each) {
                    return mine_is(each, part::act::leaves) && team.step() >= each.step;
                })) {
                all.lives[own].has_left = true;
                all.lives[own].has_handed_over = team.leave(codec);
                ++all.left;
                all.handed_over += all.lives[own].has_handed_over ? 1U : 0U;
                break;
            }
            const std::vector<float> before = residual();
            const rill::view crew = team.settle(state, codec);
            all.lives[own].residual = residual();
            const bool has_tried = std::exchange(all.lives[own].has_tried, false);
            all.missed += has_tried && all.lives[own].residual_then.empty() && team.step() > all.lives[own].tried;
            // A step that has turned out to be committed changes it too.
            all.lives[own].has_taken |= all.left > 0 && all.lives[own].residual != before;
            if (static_cast<double>(team.step()) != state.steps)
                all.complain("rank " + std::to_string(net.rank()) + " has a state of another step");
            if (team.step() >= steps) break;
            const auto pause = [&](bool in_body) {
                for (const part& each : parts)
                    if (mine_is(each, part::act::pauses) && each.step == team.step() && each.in_body == in_body)
                        net.sleep_until(net.now() + each.pause);
            };
            pause(false);
            net.sleep_until(net.now() + rill::microseconds(100));  // computes
            const std::vector<double> mine(20, given(team.step(), net.rank()));
            std::vector<double> sum(20);
            const std::uint64_t step = team.step();
            const std::vector<float> input = gradient(step, net.rank());
            std::vector<float> update(20);
            const bool is_done = team.attempt([&](auto& workers) {
                rill::all_reduce(workers, mine, sum);
                pause(true);
                all.lives[own].has_tried = true;
                all.lives[own].tried = step;
                all.lives[own].tried_in = crew.epoch;
                all.lives[own].residual_then.clear();
                rill::all_reduce(workers, input, update, codec);
                all.lives[own].residual_then = residual();
                all.lives[own].norms.push_back(rill::residual_norm(codec));
            });
            for (const rill::lost_residual& each : team.lost()) all.lost.emplace(each.rank, each.norm);
            if (!is_done) {
                ++all.repeats;
                if (!std::exchange(is_to_alter, false)) continue;
                ++all.altered;
                state.values[3] += 1;
                continue;
            }
            ++all.commits;
            ++all.lives[own].commits;
            all.lives[own].has_taken = false;
            all.lives[own].residual = residual();
            double expected = 0;
            for (const rill::rank_t rank : crew.members) expected += given(step, rank);
            if (crew.epoch == 0 && all.first_lives.empty()) all.first_lives = crew.incarnations;
            if (crew.epoch == 0 && all.first_lives != crew.incarnations) all.begins_anew = true;
            const committed_step done{sum[7], crew.members, crew.epoch, update};
            if (all.committed.emplace(step, done).first->second != done) all.complain("a step has two results");
            if (sum[7] != expected) all.complain("a step's result is not the sum over its members");
            state.add(sum);
        }
        all.taken_in += is_new ? 1U : 0U;
        if (!all.lives[own].has_left) team.finish();
    } catch (const rill::excluded& thrown) {
        all.lives[own].is_excluded = true;
        all.lives[own].is_late = begins_later && all.committed.size() == steps;
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
        if (begins_later && is_alone)
            all.lives[own] = {.rank = net.rank(), .is_excluded = true, .is_late = true, .begins_later = begins_later};
    }
    all.lives[own].has_ended = true;
    all.lives[own].at_the_end = state;
}

/// Whether gradients that were given = results + residuals + losses that were declared. Empty if so.
inline std::string wrong_with_residuals(const record& all) {
    if (all.committed.empty()) return {};
    // Where all have died that have heard the norms of the first members, nobody can declare a loss.
    if (std::none_of(all.lives.begin(), all.lives.end(),
                     [](const life& each) { return !each.begins_later && each.has_ended; }))
        return {};
    std::vector<float> given(20), found(20);
    for (const auto& [step, done] : all.committed) {
        add(found, done.update);
        for (const rill::rank_t rank : done.members) add(given, gradient(step, rank));
    }
    const std::uint64_t last = all.committed.rbegin()->first;
    for (const life& each : all.lives) {
        // Whoever has taken over a residual and dies at once: others count both as lost.
        if (each.has_taken) return {};
        const auto step = all.committed.find(each.tried);
        const bool is_committed = step != all.committed.end() && step->second.epoch == each.tried_in &&
                                  std::count(step->second.members.begin(), step->second.members.end(), each.rank) > 0;
        // It has died in its call, and the others have its contribution: nobody knows what it has left out.
        if (is_committed && each.has_tried && each.residual_then.empty()) return {};
        const std::vector<float>& has = is_committed && each.has_tried ? each.residual_then : each.residual;
        if (has.empty() || std::count(has.begin(), has.end(), 0.0F) == 20) continue;
        const bool is_declared = std::any_of(each.norms.begin(), each.norms.end(), [&](double norm) {
            return all.lost.contains({each.rank, norm});
        });
        // Nobody declares a norm that was never told, nor a loss after the last step.
        if (each.has_handed_over && !is_declared && (each.commits < 2 || each.tried + 2 >= last)) return {};
        if (each.has_handed_over && !is_declared) continue;
        // One step later at the latest, its loss is declared.
        const bool is_to_be_declared = each.commits > 1 && each.tried + 2 < last;
        if (is_to_be_declared && !is_declared)
            return "the residual of rank " + std::to_string(each.rank) + " is lost, and nobody has said so";
        add(found, has);
    }
    return found == given ? "" : "gradients that were given are not results, residuals or declared losses";
}

/// What does not hold; empty if all is well. `may_fail`: whether ranks may end with an error.
inline std::string wrong_with(const record& all, std::uint64_t steps, bool may_fail) {
    // Where all that had the state have died, those who come later begin with the first step.
    const bool has_survivor = std::any_of(all.lives.begin(), all.lives.end(),
                                          [](const life& each) { return !each.begins_later && each.has_ended; });
    if (all.begins_anew && !has_survivor) return {};
    if (all.begins_anew) return "there are two first views";
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
        if (each.has_left) continue;
        if (!may_fail && each.is_excluded && !each.is_late) return name + " is left out: " + each.why;
        if (each.is_excluded || !each.error.empty()) continue;
        if (each.at_the_end.steps != static_cast<double>(steps)) return name + " lacks a step";
        if (first == nullptr) first = &each;
        if (!(each.at_the_end == first->at_the_end)) return name + " ends with another state";
    }
    return wrong_with_residuals(all);
}

}  // namespace elastic_scene
