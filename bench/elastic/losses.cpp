// What it costs a job of 8 ranks in virtual time that its steps are those of an elastic team, and that one rank dies or
// is cut off; and how long the members take to agree that it has gone, among 8 and among many. Prints JSON. Arguments:
// the parameters, how many ranks are many.
#include "job.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/protocol/elastic_errors.hpp>
#include <rill/protocol/quorum.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using rill::rank_t;
using rill::simulated::endpoint;

constexpr int ranks = 8;
constexpr rank_t victim = 3;
constexpr std::uint64_t line = 25'000'000;  // bytes a second: 200 Mbit/s
constexpr rill::duration latency = rill::microseconds(100);
constexpr rill::duration computing = rill::milliseconds(30);  // of a step of 8 ranks
constexpr std::uint64_t disturbed = 3, steps = 7;             // in the step after so many the rank is lost

rill::simulated::network cluster() {
    return {
        .latency = latency, .bandwidth = line, .cards = [](rank_t) { return rill::network_card::full_duplex(line); }};
}

/// When the last rank has committed each step.
using times = std::vector<double>;

void keep(times& all, std::uint64_t step, rill::time_point now) {
    all[step] = std::max(all[step], (now - rill::time_point{}).seconds());
}

/// The members share the rows of a step, and so the computing.
void compute(endpoint& net, std::size_t members) {
    net.sleep_until(net.now() + rill::nanoseconds(computing.ns * ranks / static_cast<std::int64_t>(members)));
}

template <class Shape>
times plain_steps(std::size_t parameters, const Shape& shape) {
    times all(steps);
    rill::simulated::run(ranks, cluster(), [&](endpoint& net) {
        rill::group workers{net, shape};
        elastic_bench::state own(parameters);
        std::vector<float> gradient(parameters), sum(parameters);
        for (std::uint64_t step = 0; step < steps; ++step) {
            elastic_bench::fill(gradient, step, net.rank());
            compute(net, ranks);
            rill::all_reduce(workers, gradient, sum);
            own.step(sum);
            keep(all, step, net.now());
        }
    });
    return all;
}

template <class Shape>
times elastic_steps(std::size_t parameters, const Shape& shape, rill::simulated::network links,
                    const rill::elastic_options& options = {}) {
    times all(steps);
    std::vector<std::vector<float>> models;
    std::vector<std::vector<rank_t>> members(steps);
    rill::simulated::run(ranks, links, [&](endpoint& net) {
        try {
            elastic_bench::state own(parameters);
            std::vector<float> gradient(parameters), sum(parameters);
            rill::elastic team{net, shape, options};
            for (;;) {
                const rill::view& crew = team.settle(own);
                const std::uint64_t step = team.step();
                if (step == steps) break;
                members[step] = crew.members;
                elastic_bench::fill(gradient, step, net.rank());
                compute(net, crew.members.size());
                if (!team.attempt([&](auto& workers) { rill::all_reduce(workers, gradient, sum); })) continue;
                own.step(sum);
                keep(all, step, net.now());
            }
            team.finish();
            models.push_back(own.parameters);
        } catch (const rill::no_quorum&) {  // the rank that is cut off
        }
    });
    const std::vector<float> right = elastic_bench::expected(parameters, members);
    for (const auto& each : models)
        if (each != right) throw std::runtime_error("a model is not that of its steps");
    if (models.size() != (links.faults.empty() ? 8U : 7U)) throw std::runtime_error("a rank has not ended");
    return all;
}

double mean_step(const times& of, std::uint64_t first, std::uint64_t last) {
    return (of[last] - of[first]) / static_cast<double>(last - first);
}

struct loss {
    double worst = 0, mean = 0;  ///< seconds beyond a step
};
/// How much later than a step after its beginning the loss of a rank lets the others commit, for losses at several
/// moments of a step. `lose(plan, at)` adds the faults.
template <class Lose>
loss cost_of_loss(std::size_t parameters, const rill::elastic_options& options, Lose&& lose) {
    constexpr int moments = 8;
    const rill::topology::ring shape{};
    const times whole = elastic_steps(parameters, shape, cluster(), options);
    loss found;
    for (int moment = 0; moment < moments; ++moment) {
        const double length = whole[disturbed] - whole[disturbed - 1];
        const double at = whole[disturbed - 1] + length * (moment + 0.5) / moments;
        rill::simulated::network links = cluster();
        links.silence = rill::seconds(1);
        lose(links.faults, rill::nanoseconds(static_cast<std::int64_t>(at * 1e9)));
        const times seen = elastic_steps(parameters, shape, links, options);
        const double beyond = seen[disturbed] - at - mean_step(seen, disturbed + 1, steps - 1);
        found.worst = std::max(found.worst, beyond);
        found.mean += beyond / moments;
    }
    return found;
}

constexpr rill::duration half_trip = rill::microseconds(500);

/// How long after the news of a rank's end the last member knows the next view, in round trips: the victim that makes
/// it longest. Nothing of the victim is under way when it dies, so that its end is told everywhere one latency later.
double agreement() {
    constexpr rill::duration dies = rill::seconds(100);
    double longest = 0;
    for (rank_t dead = 0; dead < ranks; ++dead) {
        rill::simulated::network links{.latency = half_trip, .bandwidth = 0};
        links.faults.faults = {rill::faults::kill(dead).at(dies)};
        rill::duration last{};
        int members = 0;
        rill::simulated::run(ranks, links, [&](endpoint& net) {
            elastic_bench::state own(1);
            std::vector<float> sum(1);
            rill::elastic team{net, rill::topology::tree{}, {.timeout = rill::seconds(200)}};
            const auto step = [&] {
                return team.attempt([&](auto& workers) { rill::all_reduce(workers, own.parameters, sum); });
            };
            team.settle(own);
            if (!step()) throw std::runtime_error("a step without a fault has failed");
            team.settle(own);
            net.sleep_until(rill::time_point{} + (dies - rill::seconds(1)));
            if (net.rank() == dead) net.sleep_until(rill::time_point{} + (dies + rill::seconds(1)));
            if (step()) throw std::runtime_error("a step has been done without all");
            last = std::max(last, net.now() - rill::time_point{});
            members += team.view().members.size() == ranks - 1 ? 1 : 0;
        });
        if (members != ranks - 1) throw std::runtime_error("not all know the next view");
        longest = std::max(longest, (last - dies - half_trip).seconds() / (half_trip * 2).seconds());
    }
    return longest;
}

/// The same by the members' state machines alone, for teams that are too large for a simulated run. All are told the
/// end at once. Its neighbours in the tree leave the step then, the others when the news from these reaches them. A
/// card sends `bandwidth` bytes a second, or without limit if that is 0.
class team_of_machines {
  public:
    using event = rill::detail::agreement_event;

    team_of_machines(rank_t count, std::uint64_t bandwidth) : bandwidth_(bandwidth) {
        rill::detail::agreement_decision first;
        for (rank_t rank = 0; rank < count; ++rank) {
            first.next.members.push_back(rank);
            first.next.incarnations.push_back(life_of(rank));
        }
        const rill::detail::agreement_limits limits{rill::milliseconds(50), rill::seconds(5), rill::seconds(60)};
        for (rank_t rank = 0; rank < count; ++rank) members_.push_back({{first, rank, rill::quorum::majority, limits}});
    }

    /// In round trips.
    double lose(rank_t dead) {
        const int count = static_cast<int>(members_.size());
        const rill::topology::tree tree{};
        rill::time_point last{};
        for (rank_t rank = 0; rank < count; ++rank) {
            if (rank == dead) continue;
            const bool is_near = tree.parent(count, rank) == dead || tree.parent(count, dead) == rank;
            at(rank).leaves = rill::time_point{} + (is_near ? rill::duration{} : half_trip);
            due_.emplace(std::pair(at(rank).leaves, ++number_), letter{.to = rank});
        }
        while (!due_.empty()) {
            const auto first = due_.begin();
            const rill::time_point now = first->first.first;
            const letter next = std::move(first->second);
            due_.erase(first);
            if (next.to == dead) continue;
            rill::detail::agreement_machine& of = at(next.to).machine;
            if (next.from == rill::no_rank) {
                tell(next.to,
                     {.happened = event::what::changed,
                      .peer = dead,
                      .change = rill::peer_change::ended,
                      .incarnation = life_of(dead)},
                     now);
                tell(next.to, {.happened = event::what::ends}, now);
            } else {
                tell(next.to, {.happened = event::what::arrived, .peer = next.from, .message = &next.message}, now);
            }
            if (std::exchange(at(next.to).knows, of.view().epoch == 1) || of.view().epoch == 0) continue;
            last = now;
            if (of.view().contains(dead)) throw std::runtime_error("a machine keeps the dead");
        }
        for (rank_t rank = 0; rank < count; ++rank)
            if (rank != dead && !at(rank).knows) throw std::runtime_error("not all know the next view");
        return (last - rill::time_point{}).seconds() / (half_trip * 2).seconds();
    }

  private:
    struct member {
        rill::detail::agreement_machine machine;
        rill::time_point leaves{}, sends{};  ///< the step; when its card is free
        bool knows = false;                  ///< the next view
    };
    struct letter {
        rank_t to = rill::no_rank, from = rill::no_rank;  ///< from nobody: the end of the step
        rill::detail::agreement_message message{};
    };

    static std::uint64_t life_of(rank_t rank) { return static_cast<std::uint64_t>(rank) + 1; }
    member& at(rank_t rank) { return members_[static_cast<std::size_t>(rank)]; }
    void tell(rank_t rank, const event& what, rill::time_point now) {
        for (const auto& each : at(rank).machine.on(what, now)) {
            if (each.what != rill::detail::agreement_action::ask::send) continue;
            rill::time_point& sent = at(rank).sends;
            sent = std::max(sent, now);
            if (bandwidth_ != 0) {
                const rill::detail::agreement_frame frame{life_of(rank), each.message};
                const std::size_t bytes = to_message(frame, at(rank).machine.ended_by(each.message.value)).size();
                sent = sent + rill::nanoseconds(static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) /
                                                                          static_cast<double>(bandwidth_)));
            }
            // Nobody reads it before it has left the step.
            due_.emplace(std::pair(std::max(sent + half_trip, at(each.peer).leaves), ++number_),
                         letter{each.peer, rank, each.message});
        }
    }

    std::uint64_t bandwidth_;
    std::vector<member> members_{};
    std::map<std::pair<rill::time_point, std::uint64_t>, letter> due_{};  ///< by time, and in order
    std::uint64_t number_ = 0;
};

void print(const char* name, const loss& of) {
    std::printf("\"%s\": {\"ms\": %.4f, \"mean_ms\": %.4f}, ", name, of.worst * 1e3, of.mean * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s PARAMETERS MANY\n", argv[0]);
        return 2;
    }
    try {
        const auto parameters = static_cast<std::size_t>(std::atoll(argv[1]));
        const int many = std::atoi(argv[2]);
        std::printf("{");
        print("killed", cost_of_loss(parameters, {}, [](rill::fault_plan& plan, rill::duration at) {
                  plan.faults.push_back(rill::faults::kill(victim).at(at));
              }));
        print("unplugged",
              cost_of_loss(parameters, {.patience = rill::seconds(1)}, [](rill::fault_plan& plan, rill::duration at) {
                  for (rank_t other = 0; other < ranks; ++other)
                      if (other != victim) plan.faults.push_back(rill::faults::cut_between(victim, other).at(at));
              }));
        const rill::topology::ring ring{};
        const double plain = mean_step(plain_steps(parameters, ring), 0, steps - 1);
        const double elastic = mean_step(elastic_steps(parameters, ring, cluster()), 0, steps - 1);
        std::printf("\"prepared\": {\"plain_ms\": %.4f, \"elastic_ms\": %.4f, \"ratio\": %.5f}, ", plain * 1e3,
                    elastic * 1e3, elastic / plain);
        const double whole = agreement();
        double by_machines = 0;
        for (rank_t dead = 0; dead < ranks; ++dead)
            by_machines = std::max(by_machines, team_of_machines(ranks, 0).lose(dead));
        if (std::abs(whole - by_machines) > 0.01)
            throw std::runtime_error("the state machines alone take another time");
        std::printf("\"agreement\": {\"p8\": %.4f, \"many\": %.4f, \"many_10gbit\": %.4f}}\n", whole,
                    team_of_machines(many, 0).lose(many / 2), team_of_machines(many, 1'250'000'000).lose(many / 2));
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failed.what());
        return 1;
    }
}
