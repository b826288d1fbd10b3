// Ranks die while they agree, and control travels: whoever lives has the same verdict.
#include <rill/core/random.hpp>
#include <rill/session/detail/agreement.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace faults = rill::faults;
namespace sim = rill::simulated;
using rill::detail::outcome;
using rill::detail::verdict;

namespace {

constexpr rill::duration timeout = rill::seconds(10);
const char* const runs_wanted = std::getenv("RILL_RECOVERY_RUNS");
const std::uint64_t runs = runs_wanted != nullptr ? std::strtoull(runs_wanted, nullptr, 10) : 300;

/// What each rank that has lived to the end has agreed upon.
struct agreed {
    std::vector<std::optional<verdict>> by_rank;
    std::vector<rill::time_point> at;
};

agreed agree(const sim::network& net_of_all, const std::vector<outcome>& own, std::uint64_t starts) {
    agreed all{std::vector<std::optional<verdict>>(own.size()), std::vector<rill::time_point>(own.size())};
    sim::run(static_cast<int>(own.size()), net_of_all, [&](sim::endpoint& net) {
        const auto self = static_cast<std::size_t>(net.rank());
        std::vector<rill::rank_t> members(own.size());
        std::iota(members.begin(), members.end(), 0);
        rill::random_sequence draw(rill::random_key{starts}.derive(self));
        net.sleep_until({static_cast<std::int64_t>(draw.below(2'000'000))});
        rill::detail::agreement<sim::endpoint> end(net, 5, 1);
        if (own[self] == outcome::left) {
            end.leave(members, timeout);
            all.at[self] = net.now();
            return;
        }
        end.say(own[self]);
        verdict reached = end.reach(members, timeout);
        all.at[self] = net.now();
        net.sleep_until({rill::seconds(2000).ns});  // whoever dies later still counts
        all.by_rank[self] = std::move(reached);
    });
    return all;
}

/// Up to all ranks but one die, about when they ask, when they have waited in vain, or when they go through the rounds.
sim::network drawn(rill::random_sequence& draw, int ranks) {
    sim::network net{.latency = rill::microseconds(200), .bandwidth = 0, .jitter = rill::milliseconds(3)};
    net.control = sim::control_plane::travelling;
    net.seed = draw.bits();
    for (std::uint64_t deaths = draw.below(static_cast<std::uint64_t>(ranks)); deaths > 0; --deaths) {
        const auto base = static_cast<std::int64_t>(draw.below(3)) * timeout.ns;
        const auto within = static_cast<std::int64_t>(draw.below(4) == 0 ? 2'000'000'000 : 15'000'000);
        net.faults.faults.push_back(faults::kill(static_cast<int>(draw.below(static_cast<std::uint64_t>(ranks))))
                                        .at(rill::nanoseconds(base + static_cast<std::int64_t>(draw.below(
                                                                         static_cast<std::uint64_t>(within))))));
    }
    if (draw.below(3) == 0) net.faults.faults.push_back(faults::lose(0.3));
    net.faults.seed = draw.bits();
    return net;
}

/// What is wrong; nothing if all is well.
std::string wrong_with(const agreed& all, const std::vector<outcome>& own) {
    const verdict* first = nullptr;
    bool all_done = true;
    for (const outcome each : own) all_done &= each == outcome::done;
    for (std::size_t rank = 0; rank < own.size(); ++rank) {
        if (!all.by_rank[rank]) continue;
        const verdict& told = *all.by_rank[rank];
        if (first == nullptr) first = &told;
        if (told.is_done != first->is_done || told.gone != first->gone) return "the verdicts differ";
        if (all_done && !told.is_done) return "all are done, and repeat";
        if (own[rank] == outcome::failed && told.is_done) return "done, though a rank that lives has failed";
        for (const rill::rank_t gone : told.gone)
            if (gone == static_cast<rill::rank_t>(rank)) return "a rank that lives is excluded";
    }
    return {};
}

}  // namespace

TEST_CASE("ranks that die at any time of an agreement leave one verdict to those who live") {
    std::uint64_t wrong = 0, repeated = 0;
    std::string reports;
    for (std::uint64_t run = 0; run < runs; ++run) {
        rill::random_sequence draw(rill::random_key{run});
        const int ranks = 2 + static_cast<int>(draw.below(6));
        std::vector<outcome> own(static_cast<std::size_t>(ranks));
        for (outcome& each : own) each = draw.below(3) == 0 ? outcome::failed : outcome::done;
        if (draw.below(4) == 0) own.back() = outcome::left;
        const sim::network net = drawn(draw, ranks);
        const agreed all = agree(net, own, run);
        const std::string what = wrong_with(all, own);
        for (const auto& each : all.by_rank) repeated += each && !each->is_done ? 1U : 0U;
        if (what.empty()) continue;
        ++wrong;
        if (reports.size() < 2000) reports += std::to_string(run) + ", " + to_string(net.faults) + ": " + what + "\n";
    }
    MESSAGE(runs << " runs, " << wrong << " wrong");
    CHECK(reports == "");
    CHECK(repeated > runs / 3);
}

TEST_CASE("whoever has decided ends the wait of the others for a rank that died in its round") {
    // Rank 2 answers rank 1 and dies before its answer to rank 0 is repeated; rank 0 waits for its round.
    sim::network net{.latency = rill::microseconds(10), .bandwidth = 0, .control = sim::control_plane::travelling};
    int late = 0, runs_with_two = 0;
    for (std::int64_t when = 0; when < 4'000'000; when += 20'000) {
        net.faults.faults = {faults::kill(2).at(rill::nanoseconds(when))};
        const agreed all = agree(net, {outcome::failed, outcome::done, outcome::done}, 7);
        REQUIRE((all.by_rank[0] && all.by_rank[1]));
        ++runs_with_two;
        const auto apart = all.at[0].ns > all.at[1].ns ? all.at[0] - all.at[1] : all.at[1] - all.at[0];
        late += apart.ns > timeout.ns / 8 ? 1 : 0;
    }
    CHECK(runs_with_two == 200);
    CHECK(late == 0);
}

TEST_CASE("nobody waits for a rank that leaves, nor it for long") {
    sim::network net{.latency = rill::microseconds(10), .control = sim::control_plane::travelling};
    for (const bool by_last : {true, false}) {
        std::vector<outcome> own(4, outcome::failed);
        own[by_last ? 3 : 0] = outcome::left;
        const agreed all = agree(net, own, 1);
        for (const rill::time_point at : all.at) CHECK(at.ns < rill::milliseconds(20).ns);
        CHECK(all.by_rank[1].value().gone == std::vector<rill::rank_t>{by_last ? 3 : 0});
    }
}

TEST_CASE("a verdict takes several calls, and leaves to the next one whom it cannot name") {
    for (const int ranks : {40, 160}) {
        std::vector<outcome> own(static_cast<std::size_t>(ranks), outcome::failed);
        sim::network net{.control = sim::control_plane::travelling};
        std::vector<rill::rank_t> dead;
        for (int rank = 0; rank < ranks; ++rank) {
            if (rank % 20 == 7) continue;
            dead.push_back(rank);
            net.faults.faults.push_back(faults::kill(rank).at(rill::nanoseconds(1)));
        }
        if (dead.size() > 140) dead.resize(140);
        const agreed all = agree(net, own, 3);
        for (int rank = 7; rank < ranks; rank += 20)
            CHECK(all.by_rank[static_cast<std::size_t>(rank)].value().gone == dead);
    }
}
