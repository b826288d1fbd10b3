// What silent links cost an all_reduce of 407,050 floats on backup_tree, in virtual time, and how many links may be
// lost. Prints JSON. Arguments: the floats, how many times links are drawn.
#include <rill/collective/all_reduce.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using rill::rank_t;
using rill::topology::backup_tree;

/// Steps begin so far apart that each has ended before the next.
constexpr rill::duration apart = rill::seconds(30);
constexpr int quiet_steps = 3, steps = 7;

struct machine {
    int ranks;
    std::size_t floats;
    std::uint64_t bandwidth;  ///< of each rank's card
};
struct outcome {
    std::vector<double> seconds;  ///< of each step, until the last rank has the result
    std::vector<float> result;
};

/// The links in `cuts` fall silent, both ways, after the quiet steps.
template <class Shape>
outcome run(const machine& on, const Shape& shape, const std::vector<std::pair<rank_t, rank_t>>& cuts) {
    rill::fault_plan plan;
    const rill::duration when = apart * (quiet_steps + 1) - rill::seconds(1);
    for (const auto& [one, other] : cuts) plan.faults.push_back(rill::faults::cut_between(one, other).at(when));
    outcome seen{std::vector<double>(steps), {}};
    const rill::network_card card = rill::network_card::full_duplex(on.bandwidth);
    rill::simulated::run(on.ranks,
                         {.latency = rill::microseconds(50),
                          .bandwidth = on.bandwidth,
                          .cards = [card](rank_t) { return card; },
                          .faults = plan},
                         [&](rill::simulated::endpoint& net) {
                             rill::group workers{net, shape, {.timeout = rill::seconds(20)}};
                             std::vector<float> own(on.floats), sum(on.floats);
                             for (std::size_t i = 0; i < own.size(); ++i)
                                 own[i] = 0.1F *
                                          static_cast<float>((i * 7 + static_cast<std::size_t>(net.rank()) * 13) % 101);
                             for (int step = 0; step < steps; ++step) {
                                 net.sleep_until(rill::time_point{} + apart * (step + 1));
                                 const rill::time_point begun = net.now();
                                 rill::all_reduce(workers, own, sum);
                                 double& longest = seen.seconds[static_cast<std::size_t>(step)];
                                 longest = std::max(longest, (net.now() - begun).seconds());
                                 if (seen.result.empty()) seen.result = sum;
                                 if (sum != seen.result) throw std::runtime_error("ranks or steps have different sums");
                             }
                         });
    return seen;
}

/// The bandwidth with which a step without faults takes `seconds`.
machine with_time(int ranks, std::size_t floats, double seconds) {
    machine on{ranks, floats, 100'000'000};
    for (int i = 0; i < 6; ++i) {
        const double took = run(on, backup_tree{}, {}).seconds[quiet_steps];
        on.bandwidth = static_cast<std::uint64_t>(static_cast<double>(on.bandwidth) * took / seconds);
    }
    return on;
}

struct costs {
    double one = 0, parallel = 0, serial = 0;  ///< in timeouts
};
/// Parallel: two links at one height; serial: two at consecutive heights.
costs fixed_costs(const machine& on, rill::duration timeout) {
    const backup_tree tree{.detect = rill::detect::fixed(timeout)};
    const rank_t low = tree.child(on.ranks, 0, 0), lower = tree.child(on.ranks, low, 0);
    const rank_t beside = tree.child(on.ranks, 0, 1), below_beside = tree.child(on.ranks, beside, 0);
    const auto cost = [&](const std::vector<std::pair<rank_t, rank_t>>& cuts) {
        const outcome seen = run(on, tree, cuts);
        return (seen.seconds[quiet_steps] - seen.seconds[quiet_steps - 1]) / timeout.seconds();
    };
    return {cost({{lower, low}}), cost({{lower, low}, {below_beside, beside}}), cost({{lower, low}, {low, 0}})};
}
void print(const char* name, const costs& of) {
    std::printf(
        "\"%s\": {\"one\": %.4f, \"parallel\": %.4f, \"serial\": %.4f, \"parallel_to_one\": %.4f, "
        "\"serial_to_one\": %.4f}",
        name, of.one, of.parallel, of.serial, of.parallel / of.one, of.serial / of.one);
}

/// How many of these links are lost, in this order, until some ranks have no way to others.
std::size_t lost_until_apart(std::size_t ranks, const std::vector<std::pair<rank_t, rank_t>>& order) {
    std::vector<std::size_t> part(ranks);
    std::iota(part.begin(), part.end(), std::size_t{0});
    std::size_t parts = ranks, kept = order.size();
    while (parts > 1) {  // the links are put back, the last one first
        const auto& [one, other] = order[--kept];
        const std::size_t from = part[static_cast<std::size_t>(one)], to = part[static_cast<std::size_t>(other)];
        if (from == to) continue;
        std::replace(part.begin(), part.end(), from, to);
        --parts;
    }
    return kept + 1;
}

/// The means, over many draws, of how many links are lost until a rank has none of the tree or of the backup links, and
/// of which share of all links is lost until a parent and its child have neither their link nor another rank between,
/// and until the network falls apart, so that no way of any length is left.
std::array<double, 3> lost_links(int ranks, int draws) {
    const backup_tree tree{};
    std::vector<std::pair<rank_t, rank_t>> near, all;
    for (rank_t one = 0; one < ranks; ++one)
        for (rank_t other = one + 1; other < ranks; ++other) {
            all.emplace_back(one, other);
            if (tree.is_tree_link(ranks, one, other) || tree.is_backup_link(ranks, one, other))
                near.emplace_back(one, other);
        }
    rill::random_sequence draw{rill::random_key{static_cast<std::uint64_t>(ranks)}};
    const auto shuffled = [&](std::vector<std::pair<rank_t, rank_t>> links) {
        for (std::size_t left = links.size(); left > 1; --left) std::swap(links[left - 1], links[draw.below(left)]);
        return links;
    };
    const auto count = static_cast<std::size_t>(ranks);
    double isolated = 0, parted = 0, divided = 0;
    for (int i = 0; i < draws; ++i) {
        std::vector<int> left(count);
        for (const auto& [one, other] : near)
            ++left[static_cast<std::size_t>(one)], ++left[static_cast<std::size_t>(other)];
        for (const auto& [one, other] : shuffled(near)) {
            isolated += 1;
            if (--left[static_cast<std::size_t>(one)] == 0 || --left[static_cast<std::size_t>(other)] == 0) break;
        }
        std::vector<char> works(count * count, 1);
        std::vector<int> ways(count, ranks - 1);  // between each rank and its parent: the link, and the other ranks
        const auto is_up = [&](rank_t a, rank_t b) -> char& {
            return works[static_cast<std::size_t>(std::min(a, b)) * count + static_cast<std::size_t>(std::max(a, b))];
        };
        std::size_t lost = 0;
        bool is_parted = false;
        const auto order = shuffled(all);
        divided += static_cast<double>(lost_until_apart(count, order)) / static_cast<double>(all.size());
        for (const auto& [one, other] : order) {
            if (is_parted) break;
            ++lost;
            is_up(one, other) = 0;
            for (rank_t child = 1; child < ranks; ++child) {
                const rank_t parent = tree.parent(ranks, child);
                int& open = ways[static_cast<std::size_t>(child)];
                if (std::minmax(child, parent) == std::minmax(one, other)) {
                    --open;
                } else if (one == child || other == child || one == parent || other == parent) {
                    const rank_t end = one == child || other == child ? child : parent;
                    const rank_t by = one == end ? other : one;
                    if (is_up(end == child ? parent : child, by) != 0) --open;
                }
                is_parted = is_parted || open == 0;
            }
        }
        parted += static_cast<double>(lost) / static_cast<double>(all.size());
    }
    return {isolated / draws, parted / draws, divided / draws};
}

}  // namespace

int main(int count, char** arguments) {
    const std::size_t floats = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 407'050;
    const int draws = count > 2 ? std::atoi(arguments[2]) : 2000;
    constexpr std::pair<int, double> trees[] = {{7, 0.033}, {15, 0.062}, {31, 0.091}};
    double first_more = 0, later = 0, to_plain = 0;
    std::printf("{");
    for (const auto& [ranks, seconds] : trees) {
        const machine on = with_time(ranks, floats, seconds);
        const outcome plain = run(on, rill::topology::tree{}, {});
        // Like with like: the plain tree sends the vector as a whole here.
        const outcome whole = run(on, backup_tree{.chunk_bytes = floats * sizeof(float) + 1}, {});
        const backup_tree tree{};
        const rank_t low = tree.child(ranks, 0, 0), lower = tree.child(ranks, low, 0);
        double worst_first = 0, worst_later = 0;
        for (const auto& cut : {std::pair{lower, low}, std::pair{low, rank_t{0}}}) {
            const outcome seen = run(on, tree, {cut});
            if (seen.result != plain.result) throw std::runtime_error("the sum is not that of the plain tree");
            worst_first = std::max(worst_first, seen.seconds[quiet_steps] - seen.seconds[quiet_steps - 1]);
            worst_later = std::max(worst_later, seen.seconds[steps - 1] / seen.seconds[quiet_steps - 1]);
        }
        const double ratio = whole.seconds[quiet_steps] / plain.seconds[quiet_steps];
        std::printf("\"p%d\": {\"no_fault_ms\": %.3f, \"bandwidth\": %llu, ", ranks,
                    run(on, tree, {}).seconds[quiet_steps] * 1e3, static_cast<unsigned long long>(on.bandwidth));
        print("fixed_500", fixed_costs(on, rill::milliseconds(500)));
        std::printf(", ");
        print("fixed_1000", fixed_costs(on, rill::seconds(1)));
        std::printf(
            ", \"first_ms_more\": %.3f, \"later_ratio\": %.4f, \"plain_tree_ms\": %.3f, \"whole_to_plain\": %.4f}, ",
            worst_first * 1e3, worst_later, plain.seconds[quiet_steps] * 1e3, ratio);
        first_more = std::max(first_more, worst_first * 1e3);
        later = std::max(later, worst_later);
        to_plain = std::max(to_plain, ratio);
    }
    std::printf("\"adaptive\": {\"first_ms_more\": %.3f, \"later_ratio\": %.4f, \"whole_to_plain\": %.4f}, \"lost\": {",
                first_more, later, to_plain);
    double least_share = 1, least_apart = 1;
    for (const int ranks : {3, 7, 15, 31, 63}) {
        const auto [isolated, parted, divided] = lost_links(ranks, draws);
        std::printf("\"p%d\": {\"until_isolated\": %.3f, \"share_until_parted\": %.4f, \"share_until_apart\": %.4f}, ",
                    ranks, isolated, parted, divided);
        least_apart = std::min(least_apart, divided);
        least_share = std::min(least_share, parted);
    }
    std::printf("\"least_share_until_parted\": %.4f, \"least_share_until_apart\": %.4f}}\n", least_share, least_apart);
}
