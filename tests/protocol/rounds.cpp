#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

using rill::aggregate::mean;
using rill::aggregate::sum;
using rill::simulated::endpoint;
using rill::topology::star;
using rill::topology::tree;
using namespace rill::straggler;

namespace {

constexpr std::size_t n = 20;

/// A network in which rank r computes for `milliseconds[r]` in each round.
rill::simulated::network taking(std::vector<int> milliseconds) {
    return {.latency = rill::microseconds(10), .computing = [=](rill::rank_t rank, std::uint64_t, double) {
                return rill::milliseconds(milliseconds[static_cast<std::size_t>(rank)]);
            }};
}

/// A rank's contribution in a round: a power of two tells the ranks apart in any sum, the bits above tell the round.
std::int64_t part_of(rill::rank_t rank, std::uint64_t round) {
    return (std::int64_t{1} << rank) + static_cast<std::int64_t>(round << 32U);
}

std::string ranks_of(const rill::round_receipt& r) {
    std::string text;
    for (const rill::contributor& each : r.in)
        text += (text.empty() ? "" : " ") + std::to_string(each.rank) +
                (each.age == 0 ? "" : "-" + std::to_string(each.age));
    return text;
}

/// What the root saw: which contributions, with their ages, were in each result, and the sums.
struct history {
    std::vector<std::string> in;
    std::vector<std::int64_t> sums;
    std::vector<std::vector<rill::latecomer>> late;
    std::vector<std::vector<rill::rank_t>> missing;
    std::vector<std::uint64_t> rounds_seen;  ///< rounds that each rank took part in
    std::vector<int> was_in;                 ///< contributions of each rank that are in a result
};

template <class Tree, class... Policies>
history play(int ranks, const rill::simulated::network& net, int rounds, const Tree& shape,
             const Policies&... policies) {
    history seen;
    seen.rounds_seen.resize(static_cast<std::size_t>(ranks));
    seen.was_in.resize(static_cast<std::size_t>(ranks));
    rill::simulated::run(ranks, net, [&](endpoint& end) {
        const auto self = static_cast<std::size_t>(end.rank());
        rill::group workers{end, star{}};
        rill::rounds steps{workers, shape, policies...};
        std::vector<std::int64_t> model(n), own(n), update(n);
        bool has_sent = false;
        model[0] = 1;
        while (steps.next(model)) {
            CHECK(model[0] == static_cast<std::int64_t>(steps.number()));
            if (has_sent) seen.was_in[self] += steps.was_in() ? 1 : 0;
            ++seen.rounds_seen[self];
            rill::compute(end, 1);
            own.assign(n, part_of(end.rank(), steps.number()));
            const rill::round_receipt r = steps.reduce(own, update, sum{});
            has_sent = true;
            if (!steps.is_root()) continue;
            seen.in.push_back(ranks_of(r));
            seen.sums.push_back(update[n - 1]);
            CHECK(update[0] == update[n - 1]);
            seen.late.push_back(r.late);
            seen.missing.push_back(r.missing);
            std::int64_t expected = 0;
            for (const rill::contributor& each : r.in) expected += part_of(each.rank, steps.number() - each.age);
            CHECK(update[0] == expected);
            CHECK(r.contributors == static_cast<int>(r.in.size()));
            CHECK(r.weight == static_cast<double>(r.in.size()));
            model[0] = static_cast<std::int64_t>(steps.number()) + 1;
            if (steps.number() == static_cast<std::uint64_t>(rounds)) steps.end();
        }
        if (has_sent) seen.was_in[self] += steps.was_in() ? 1 : 0;
    });
    return seen;
}

}  // namespace

TEST_CASE("rounds: wait_all gets every contribution, in order, on stars and trees") {
    const auto net = taking({1, 4, 2, 3, 1, 7, 1});
    for (const int arity : {1, 2, 3, 6}) {
        const history seen = play(7, net, 4, tree{arity}, wait_all{});
        for (std::size_t i = 0; i < 4; ++i) {
            CHECK(seen.in[i] == (arity == 1 || arity == 6 ? "0 1 2 3 4 5 6" : seen.in[0]));
            CHECK(seen.sums[i] == 127 + (static_cast<std::int64_t>(7 * (i + 1)) << 32));
            CHECK(seen.late[i].empty());
            CHECK(seen.missing[i].empty());
        }
        CHECK(seen.rounds_seen == std::vector<std::uint64_t>(7, 4));
        CHECK(seen.was_in == std::vector<int>(7, 4));
    }
}

TEST_CASE("rounds: the slowest rank is left out, is told so, and continues with the newest state") {
    // Rank 2 takes 25 ms where a round takes 10: it is in no result, and begins in round 1, 3 or 4, 6.
    const history seen = play(4, taking({1, 10, 25, 10}), 8, star{}, tolerate{1});
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK(seen.in[i] == "0 1 3");
        CHECK(seen.missing[i] == std::vector<rill::rank_t>{2});
    }
    CHECK(seen.was_in == std::vector<int>{8, 8, 0, 8});
    CHECK(seen.rounds_seen == std::vector<std::uint64_t>{8, 8, 4, 8});
    REQUIRE(seen.late[2].size() == 1);
    const rill::latecomer& late = seen.late[2][0];
    CHECK(late.rank == 2);
    CHECK(late.rounds == 2);
    CHECK(late.by > rill::milliseconds(14));
    CHECK(late.by < rill::milliseconds(16));
}

TEST_CASE("rounds: the fastest ranks are enough") {
    const history seen = play(5, taking({0, 30, 20, 10, 40}), 3, star{}, fastest{2});
    CHECK(seen.in[0] == "0 2 3");
    CHECK(play(5, taking({0, 30, 20, 10, 40}), 3, star{}, fastest{4}).in[2] == "0 1 2 3 4");
}

TEST_CASE("rounds: a deadline ends the wait on each level of a tree") {
    const history on_star = play(4, taking({0, 5, 30, 5}), 2, star{}, until{.after = rill::milliseconds(10)});
    CHECK(on_star.in == std::vector<std::string>{"0 1 3", "0 1 3"});
    const history two =
        play(4, taking({0, 5, 30, 45}), 2, star{}, until{.after = rill::milliseconds(10), .at_least = 2});
    CHECK(two.in[0] == "0 1 2");
    // Rank 1 waits for rank 2 until 10 ms; rank 0 waits for rank 1 until 20 ms.
    const history on_chain = play(3, taking({0, 5, 15}), 1, tree{1}, until{.after = rill::milliseconds(10)});
    CHECK(on_chain.in[0] == "0 1");
    const history in_time = play(3, taking({0, 5, 9}), 1, tree{1}, until{.after = rill::milliseconds(10)});
    CHECK(in_time.in[0] == "0 1 2");
    const history nobody = play(3, taking({0, 50, 50}), 1, star{}, until{.after = rill::milliseconds(10)});
    CHECK(nobody.in[0] == "0");
}

TEST_CASE("rounds: a late contribution goes into the next round where the staleness allows it") {
    // Rank 2 contributes every 25 ms, in rounds of 10 ms.
    const history seen = play(4, taking({1, 10, 25, 10}), 9, star{}, tolerate{1}, unbounded{});
    CHECK(seen.in[0] == "0 1 3");
    CHECK(seen.in[2].find("2-2") != std::string::npos);
    CHECK(seen.was_in[2] >= 2);
    const history no_staleness = play(4, taking({1, 10, 25, 10}), 3, star{}, tolerate{1}, bounded{0});
    CHECK(no_staleness.in == std::vector<std::string>(3, "0 1 2 3"));
}

TEST_CASE("rounds: bounded staleness slows down the fast ranks, and drops nothing") {
    for (const std::uint32_t bound : {1U, 2U, 5U}) {
        const history seen = play(4, taking({0, 1, 20, 2}), 30, star{}, fastest{1}, bounded{bound});
        std::uint32_t oldest = 0;
        for (const std::string& in : seen.in)
            if (const auto at = in.find("2-"); at != std::string::npos)
                oldest = std::max(oldest, static_cast<std::uint32_t>(in[at + 2] - '0'));
        CHECK(oldest == bound);
        // Except for the last contribution, which may still be on its way when rounds end.
        CHECK(seen.was_in[2] + 1 >= static_cast<int>(seen.rounds_seen[2]));
    }
}

TEST_CASE("rounds: a trigger may wait for all ranks") {
    const history seen = play(4, taking({0, 1, 20, 2}), 3, star{}, fastest{2}, fresh{}, all_ready{});
    CHECK(seen.in == std::vector<std::string>(3, "0 1 3"));
    CHECK(seen.rounds_seen[2] == 3);
}

TEST_CASE("rounds: a late inner rank makes all ranks below it late") {
    // A binary tree of 7: 0 has 1 and 4, 1 has 2 and 3, 4 has 5 and 6.
    const history seen = play(7, taking({1, 1, 1, 1, 50, 1, 1}), 2, tree{2}, tolerate{1});
    CHECK(seen.in[0].find('4') == std::string::npos);
    CHECK(seen.in[0].find('5') == std::string::npos);
    CHECK(seen.was_in[5] == 0);
    CHECK(seen.rounds_seen[5] == 1);
}

TEST_CASE("rounds: error feedback keeps what is in no result") {
    // Whole numbers, so that sums are exact. The sum of all contributions is in the results and in the residuals.
    for (const int slow : {1, 35}) {
        const int ranks = 5;
        double put_in = 0, in_results = 0, left = 0;
        std::uint64_t fewest = 1000;
        rill::simulated::run(ranks, taking({1, 10, slow, 10, 3}), [&](endpoint& end) {
            rill::group workers{end, star{}};
            rill::rounds steps{workers, tree{2}, tolerate{1}};
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.2}}.bind<double>(n);
            std::vector<double> model(n), own(n), update(n);
            std::uint64_t mine = 0;
            while (steps.next(model)) {
                ++mine;
                rill::compute(end, 1);
                for (std::size_t i = 0; i < n; ++i) {
                    own[i] =
                        static_cast<double>((i * 7 + steps.number() * 3 + static_cast<std::uint64_t>(end.rank())) % 11);
                    put_in += own[i];
                }
                steps.reduce(own, update, codec, sum{});
                if (!steps.is_root()) continue;
                for (const double x : update) in_results += x;
                if (steps.number() == 12) steps.end();
            }
            for (const double x : codec.residual()) left += x;
            fewest = std::min(fewest, mine);
        });
        CHECK(put_in == in_results + left);
        CHECK(fewest == (slow == 1 ? 12U : fewest));
        if (slow != 1) CHECK(fewest < 12);
    }
}

TEST_CASE("rounds: a mean divides by the weight of those that contributed") {
    rill::simulated::run(4, taking({1, 10, 25, 10}), [&](endpoint& end) {
        rill::group workers{end, star{}};
        rill::rounds steps{workers, star{}, tolerate{1}};
        std::vector<double> model(n), update(n);
        while (steps.next(model)) {
            rill::compute(end, 1);
            const std::vector<double> own(n, end.rank() + 1.0);
            // The root leads and contributes nothing.
            const auto r = steps.reduce(own, update, mean{}, {.weight = steps.is_root() ? 0.0 : 1.0});
            if (!steps.is_root()) continue;
            CHECK(ranks_of(r) == "1 3");
            CHECK(update == std::vector<double>(n, 3.0));
            steps.end();
        }
    });
}

TEST_CASE("rounds: threads, with a rank that sleeps") {
    rill::in_process::run(4, [&](auto& net) {
        rill::group workers{net, star{}, {.timeout = rill::seconds(30)}};
        rill::rounds steps{workers, tree{3}, fastest{2}};
        std::vector<float> model(n), update(n);
        std::uint64_t mine = 0;
        while (steps.next(model)) {
            ++mine;
            CHECK(model == std::vector<float>(n, static_cast<float>(steps.number() - 1)));
            if (net.rank() == 3) net.sleep_until(net.now() + rill::milliseconds(20));
            const auto r = steps.reduce(std::vector<float>(n, 1.0F), update, sum{});
            if (!steps.is_root()) continue;
            CHECK(update == std::vector<float>(n, static_cast<float>(r.contributors)));
            CHECK(r.contributors == 3);
            model.assign(n, static_cast<float>(steps.number()));
            if (steps.number() == 50) steps.end();
        }
        CHECK(!steps.next(model));
        if (net.rank() == 0) CHECK(mine == 50);
    });
}

TEST_CASE("rounds: a late rank learns that it is late, and sends nothing") {
    constexpr std::size_t many = 100'000;
    std::uint64_t bytes[3] = {};
    rill::simulated::run(3, taking({0, 1, 30}), [&](endpoint& end) {
        rill::group workers{end, star{}};
        rill::rounds steps{workers, star{}, tolerate{1}};
        std::vector<double> model(1), own(many), update(many);
        while (steps.next(model)) {
            rill::compute(end, 1);
            const auto r = steps.reduce(own, update);
            bytes[end.rank()] = r.wire.bytes_sent;
            if (end.rank() == 2) CHECK(r.contributors == 0);
            if (steps.is_root() && steps.number() == 40) steps.end();
        }
        if (end.rank() == 2) CHECK(!steps.was_in());
    });
    CHECK(bytes[1] > many * sizeof(double));
    CHECK(bytes[2] < 1000);
}

TEST_CASE("rounds: an inner rank whose children are silent takes part again after its round is over") {
    // A chain 0 - 1 - 2, and rank 3 below 0: in its first round rank 2 takes so long that rank 1 would wait for it.
    std::vector<std::string> in;
    const rill::simulated::network net{.computing = [](rill::rank_t rank, std::uint64_t number, double) {
        return rank == 2 && number == 0 ? rill::seconds(5) : rill::milliseconds(1);
    }};
    rill::simulated::run(4, net, [&](endpoint& end) {
        rill::group workers{end, star{}};
        rill::rounds steps{workers, tree{2}, fastest{1}};  // 0 has 1 and 3, 1 has 2
        std::vector<double> model(1), own(4, 1.0), update(4);
        int mine = 0;
        while (steps.next(model)) {
            ++mine;
            rill::compute(end, 1);
            if (end.rank() == 0) end.sleep_until(end.now() + rill::milliseconds(10));
            const auto r = steps.reduce(own, update);
            if (!steps.is_root()) continue;
            in.push_back(ranks_of(r));
            if (steps.number() == 3) steps.end();
        }
        if (end.rank() == 1) CHECK(mine == 3);
    });
    CHECK(in == std::vector<std::string>(3, "0 3"));
}
