#include "gossip.hpp"

#include "code.hpp"
#include "text.hpp"

#if RILL_EXAMPLE_HAS_GRAPH
#include <rill/adapt/boost_matching.hpp>
#endif
#include <rill/core/random.hpp>
#include <rill/cost/matching_plan.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/bandwidth_matching.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace plan {

namespace {

namespace cost = rill::cost;
constexpr int most_gossiping_ranks = 256;

struct network {
    int ranks = 0;
    std::vector<double> links{};  ///< bytes per second, row by row
};

/// Draws the speed of each pair, equal both ways, from (0, fastest].
network uniform_links(int ranks, double fastest, std::uint64_t seed) {
    const auto size = static_cast<std::size_t>(ranks);
    network made{ranks, std::vector<double>(size * size)};
    rill::random_sequence random(rill::random_key{seed});
    for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b)
            made.links[a * size + b] = made.links[b * size + a] = fastest * (1 - random.uniform());
    return made;
}

/// A row in each line, in MB/s, from the row's rank to the column's; commas or blanks between. The diagonal is ignored.
network read_links(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("cannot read " + file);
    network found;
    std::vector<std::size_t> lengths;
    std::string line;
    while (std::getline(in, line)) {
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream numbers(line);
        const std::size_t before = found.links.size();
        for (double speed = 0; numbers >> speed;) found.links.push_back(speed * 1e6);
        if (!numbers.eof())
            throw std::runtime_error(file + ": row " + std::to_string(found.ranks + 1) +
                                     " has something else than numbers");
        if (found.links.size() == before) continue;
        lengths.push_back(found.links.size() - before);
        ++found.ranks;
    }
    const auto size = static_cast<std::size_t>(found.ranks);
    if (size < 2 || found.links.size() != size * size)
        throw std::runtime_error(file +
                                 ": needs as many numbers in each row as there are rows, two or more; there are " +
                                 std::to_string(found.links.size()) + " in " + std::to_string(size) + " rows");
    const auto uneven =
        std::find_if(lengths.begin(), lengths.end(), [&](std::size_t length) { return length != size; });
    if (uneven != lengths.end())
        throw std::runtime_error(file + ": row " + std::to_string(uneven - lengths.begin() + 1) + " has " +
                                 std::to_string(*uneven) + " numbers, not " + std::to_string(size));
    for (std::size_t i = 0; i < found.links.size(); ++i)
        if (found.links[i] < 0 && i / size != i % size)
            throw std::runtime_error(file + ": row " + std::to_string(i / size + 1) + ", column " +
                                     std::to_string(i % size + 1) + " is below 0; a speed is 0 or more");
    return found;
}

network gossip_network_of(const arguments& chosen) {
    if (chosen.links.empty()) return uniform_links(chosen.ranks, chosen.bandwidth, chosen.seed);
    return read_links(chosen.links);
}

std::string megabytes(double bytes, int digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*f", digits, bytes / 1e6);
    return text;
}

/// In which the squared distance of the models falls to a half.
double half_life(const cost::matching_forecast& of) { return std::log(2) / of.consensus_per_second(); }

void print_rows(const std::vector<cost::matching_forecast>& all, const cost::matching_forecast& best) {
    std::printf("%10s %14s %15s %12s %14s %14s\n", "least", "slowest pair", "a round takes", "distance²", "consensus",
                "distance²");
    std::printf("%10s %14s %15s %11s %14s %14s\n", "MB/s", "MB/s", "", "times", "per second", "halves in");
    for (const auto& each : all)
        std::printf("%10s %14s %15s %11.5f %14.4g %13s%s\n", megabytes(each.least, 3).c_str(),
                    megabytes(each.slowest, 3).c_str(), time_text(each.seconds).c_str(), each.factor,
                    each.consensus_per_second(), time_text(half_life(each)).c_str(), &each == &best ? "  *" : "");
}

}  // namespace

void print_gossip(const arguments& chosen) {
    const network net = gossip_network_of(chosen);
    if (net.ranks > most_gossiping_ranks)
        throw wrong_argument("--gossip plans for at most " + std::to_string(most_gossiping_ranks) + " ranks, not " +
                             std::to_string(net.ranks));
    rill::topology::bandwidth_matching mixing{.links = net.links};
#if RILL_EXAMPLE_HAS_GRAPH
    mixing.matcher = rill::adapt::boost_matching{};
#else
    throw std::runtime_error("--gossip needs Boost.Graph, which was not there when the planner was built");
#endif
    const double entries = std::max(1.0, std::round(chosen.density * static_cast<double>(chosen.model_size)));
    const cost::matching_round round{.bytes = 4 * entries + static_cast<double>(rill::wire::header_bytes),
                                     .density = chosen.density,
                                     .seconds_besides = chosen.compute + chosen.latency};
    const auto all = cost::forecast_matchings(mixing, net.ranks, round);
    const auto& best = cost::fastest_consensus(all);
    if (best.consensus_per_second() <= 0)
        throw std::runtime_error(chosen.links + ": these links do not join all ranks: models never come together");
    const auto& any = all.front();
    std::printf("%d ranks in pairs; each sends %.0f of %zu entries, %.0f bytes with the header\n\n", net.ranks, entries,
                chosen.model_size, round.bytes);
    print_rows(all, best);
    std::printf("\nTake %s MB/s as `least`: the squared distance between models halves in %s",
                megabytes(best.least, 3).c_str(), time_text(half_life(best)).c_str());
    if (&best == &any)
        std::printf(", and no other choice is faster. Links need not be told apart here.\n");
    else
        std::printf(
            ", %.3g times as fast as over any links. Its rounds are %.3g times as short, and each brings %.0f %% of "
            "what a round over any links brings.\n",
            half_life(any) / half_life(best), any.seconds / best.seconds,
            100 * std::log(best.factor) / std::log(any.factor));
    std::printf("\nIn C++:\n\n%s", code_of_gossip(best.least, chosen.density).c_str());
}

}  // namespace plan
