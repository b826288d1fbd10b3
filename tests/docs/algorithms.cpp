// Computes the tables of docs/algorithms.md from the schedules and compares them with the document.

#include "document.hpp"

#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/subtree.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace rill;

/// What a collective costs; bytes in units of the whole vector.
struct cost {
    int rounds = 0;
    int messages = 0;     // of the rank that sends most of them
    double sent = 0;      // by the rank that sends most
    double received = 0;  // by the rank that receives most
    double total = 0;     // sent by all
};

template <class ScheduleOf>
cost cost_of(int size, const ScheduleOf& schedule_of) {
    cost all;
    for (rank_t rank = 0; rank < size; ++rank) {
        const auto schedule = schedule_of(rank);
        int messages = 0, sent = 0, received = 0;
        for (int round = 0; round < schedule.rounds(); ++round) {
            messages += schedule.sends(round);
            for (int i = 0; i < schedule.sends(round); ++i) sent += schedule.send(round, i).parts.count();
            for (int i = 0; i < schedule.receives(round); ++i) received += schedule.receive(round, i).parts.count();
        }
        const double parts = schedule.parts();
        all.rounds = schedule.rounds();
        all.messages = std::max(all.messages, messages);
        all.sent = std::max(all.sent, sent / parts);
        all.received = std::max(all.received, received / parts);
        all.total += sent / parts;
    }
    return all;
}

template <class Shape>
cost all_reduce_cost(const Shape& shape, int size) {
    return cost_of(size, [&](rank_t rank) { return shape.all_reduce(size, rank); });
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", value);
    std::string trimmed = text;
    trimmed.erase(trimmed.find_last_not_of('0') + 1);
    if (trimmed.back() == '.') trimmed.pop_back();
    return trimmed;
}

std::string cells(const cost& c) {
    return std::to_string(c.rounds) + " | " + std::to_string(c.messages) + " | " + number(c.sent) + " N | " +
           number(c.received) + " N | " + number(c.total) + " N |\n";
}

constexpr int ranks = 8;

template <class Visit>
void for_each_topology(Visit visit) {
    visit("`ring`", topology::ring{});
    visit("`recursive_doubling`", topology::recursive_doubling{});
    visit("`halving_doubling`", topology::halving_doubling{});
    visit("`split_allgather`", topology::split_allgather{});
    visit("`tree{.arity = 2}`", topology::tree{.arity = 2});
    visit("`tree{.arity = 4}`", topology::tree{.arity = 4});
    visit("`star`", topology::star{});
}

const std::string heading = " rounds | messages | sent | received | sent by all |\n|---|--:|--:|--:|--:|--:|\n";

/// Rounds and bytes of the busiest rank, as text for the document and as functions to compare with the schedules.
struct formula {
    const char* topology;
    const char* rounds_text;
    const char* sent_text;
    double rounds;
    double sent;
};

std::vector<formula> formulas(int p) {
    const int floor_log = static_cast<int>(std::bit_width(static_cast<unsigned>(p))) - 1, power = 1 << floor_log;
    const bool odd = p != power;  // not a power of two
    const double share = (p - 1.0) / p, halves = (power - 1.0) / power;
    const auto depth = [p](int arity) { return topology::subtree{0, 0, p}.depth(arity); };
    const auto children = [p](int arity) { return std::min(arity, p - 1); };
    return {{"`ring`", "2(P-1)", "2N(P-1)/P", 2.0 * (p - 1), 2 * share},
            {"`recursive_doubling`", "L (+2)", "N·L (+N)", floor_log + (odd ? 2.0 : 0), floor_log + (odd ? 1.0 : 0)},
            {"`halving_doubling`", "2L (+2)", "2N(1-1/2^L) (+N)", 2.0 * floor_log + (odd ? 2 : 0),
             2 * halves + (odd ? 1 : 0)},
            {"`split_allgather`", "2", "2N(P-1)/P", p > 1 ? 2.0 : 0, 2 * share},
            {"`tree{.arity = 2}`", "2D", "at most 3N", 2.0 * depth(2), 0.0 + children(2)},
            {"`tree{.arity = 4}`", "2D", "at most 5N", 2.0 * depth(4), 0.0 + children(4)},
            {"`star`", "2", "N(P-1)", p > 1 ? 2.0 : 0, p - 1.0}};
}

}  // namespace

TEST_CASE("the formulas of all_reduce hold") {
    for (int p = 1; p <= 33; ++p) {
        CAPTURE(p);
        std::size_t i = 0;
        for_each_topology([&](const char* name, const auto& shape) {
            CAPTURE(name);
            const formula f = formulas(p)[i++];
            const cost c = all_reduce_cost(shape, p);
            CHECK(std::string(f.topology) == name);
            CHECK(c.rounds == f.rounds);
            if (std::string(f.sent_text).starts_with("at most"))
                CHECK((f.sent <= c.sent && c.sent <= f.sent + 1));  // the root has no parent to send to
            else
                CHECK(c.sent == doctest::Approx(f.sent));
        });
    }
}

TEST_CASE("algorithms.md has the table of all_reduce") {
    std::string table = "| topology | rounds | sent by the busiest rank |\n|---|---|---|\n";
    for (const formula& f : formulas(ranks))
        table += std::string("| ") + f.topology + " | " + f.rounds_text + " | " + f.sent_text + " |\n";
    require_block("algorithms.md", "formulas", table);

    table = "| `all_reduce` |" + heading;
    for_each_topology([&](const char* name, const auto& shape) {
        table += std::string("| ") + name + " | " + cells(all_reduce_cost(shape, ranks));
    });
    require_block("algorithms.md", "all_reduce", table);
}

TEST_CASE("algorithms.md has the tables of reduce_scatter and all_gather") {
    std::string scatter = "| `reduce_scatter` |" + heading, gather = "| `all_gather` |" + heading;
    for_each_topology([&](const char* name, const auto& shape) {
        const auto row = [&](const auto& schedule_of) {
            return std::string("| ") + name + " | " + cells(cost_of(ranks, schedule_of));
        };
        scatter += row([&](rank_t rank) { return shape.reduce_scatter(ranks, rank); });
        gather += row([&](rank_t rank) { return shape.all_gather(ranks, rank); });
    });
    require_block("algorithms.md", "reduce_scatter", scatter);
    require_block("algorithms.md", "all_gather", gather);
}

TEST_CASE("algorithms.md has the table of the rooted collectives") {
    std::string table = "| root 0 |" + heading;
    for_each_topology([&](const std::string& name, const auto& shape) {
        if constexpr (TreeTopology<std::remove_cvref_t<decltype(shape)>>) {
            const auto row = [&](const char* what, const auto& schedule_of) {
                table += std::string("| `") + what + "`, " + name + " | " + cells(cost_of(ranks, schedule_of));
            };
            row("reduce", [&](rank_t rank) { return shape.reduce(ranks, rank, 0); });
            row("broadcast", [&](rank_t rank) { return shape.broadcast(ranks, rank, 0); });
        }
    });
    require_block("algorithms.md", "rooted", table);
}

TEST_CASE("algorithms.md has the table of what topologies promise") {
    const auto yes = [](bool holds) { return std::string(holds ? " yes |" : " no |"); };
    std::string table = "| topology | ascending order of ranks | copy phase | `reduce` and `broadcast` of its own |\n";
    table += "|---|---|---|---|\n";
    for_each_topology([&](const std::string& name, const auto& shape) {
        using shape_type = std::remove_cvref_t<decltype(shape)>;
        if (name.find("= 4") != std::string::npos) return;
        table += "| `" + std::string(shape_type::name) + "` |" + yes(shape_type::preserves_rank_order) +
                 yes(shape_type::has_copy_phase) + yes(TreeTopology<shape_type>) + "\n";
    });
    require_block("algorithms.md", "promises", table);
}

TEST_CASE("a dense message consists of a header and its values") {
    for_each_topology([&](const char* name, const auto& shape) {
        CAPTURE(name);
        const cost expected = all_reduce_cost(shape, ranks);
        std::uint64_t most = 0;
        simulated::run(ranks, {}, [&](auto& net) {
            group workers{net, shape};
            std::vector<float> values(8 * 100, 1.0F);
            const traffic sent = all_reduce(workers, values, values).wire;
            if (net.rank() == 0 || sent.bytes_sent > most) most = std::max(most, sent.bytes_sent);
        });
        const double values = expected.sent * 4 * 8 * 100;
        const double headers = static_cast<double>(most) - values;
        CHECK(headers > 0);
        CHECK(headers <= static_cast<double>(wire::header_bytes) * expected.messages);
    });
}

namespace {

/// Bytes that the busiest of eight ranks sends when each has `count` random coordinates of a million.
template <class Shape>
std::uint64_t sparse_bytes(const Shape& shape, std::size_t count, index_coding indices) {
    constexpr std::size_t dimension = 1'000'000;
    std::uint64_t most = 0;
    simulated::run(ranks, {}, [&](auto& net) {
        group workers{net, shape};
        stream<float> mine(dimension), sum;
        random_sequence random(random_key{1}.derive(net.rank()));
        const std::size_t each = dimension / count;
        for (std::size_t i = 0; i < count; ++i)
            mine.push_back(i * each + static_cast<std::size_t>(random.below(each)), 1.0F);
        const coding lossless{.indices = indices};
        const stream_codings codings{.contribution = lossless, .partial = lossless, .copy = lossless};
        most = std::max(most, all_reduce(workers, mine, sum, aggregate::sum{}, codings).wire.bytes_sent);
    });
    return most;
}

}  // namespace

TEST_CASE("algorithms.md has the table of sparse bytes") {
    std::string table = "| bytes sent by the busiest rank | 1,000 entries | packed | 10,000 entries | packed |\n";
    table += "|---|--:|--:|--:|--:|\n";
    for_each_topology([&](const std::string& name, const auto& shape) {
        if (name.find("= 4") != std::string::npos) return;
        table += "| " + name + " |";
        for (const std::size_t count : {1'000U, 10'000U})
            for (const index_coding indices : {index_coding::raw, index_coding::packed_gaps})
                table += " " + std::to_string(sparse_bytes(shape, count, indices)) + " |";
        table += "\n";
    });
    require_block("algorithms.md", "sparse", table);
}
