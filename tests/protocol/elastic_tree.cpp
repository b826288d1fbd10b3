// A job whose members change, on a tree that goes round silent links: cuts cost no member its place.
#include <rill/collective/all_reduce.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sim = rill::simulated;
namespace faults = rill::faults;
using rill::milliseconds;

namespace {

struct job {
    std::vector<std::vector<double>> committed;  ///< of each rank: the sum of each step
    std::vector<std::size_t> members;            ///< of each rank: at its end
    std::string wrong{};
};

/// Each step takes `pause` beside its messages.
job train(int ranks, std::uint64_t steps, const rill::fault_plan& plan, rill::duration pause = {}) {
    job all{std::vector<std::vector<double>>(static_cast<std::size_t>(ranks)),
            std::vector<std::size_t>(static_cast<std::size_t>(ranks))};
    sim::run(ranks,
             {.latency = rill::microseconds(50), .bandwidth = 100'000'000, .faults = plan, .silence = rill::seconds(1)},
             [&](sim::endpoint& net) {
                 const auto self = static_cast<std::size_t>(net.rank());
                 elastic_scene::model state;
                 try {
                     rill::elastic team{net,
                                        rill::topology::backup_tree{2},
                                        {.timeout = rill::seconds(5), .patience = rill::seconds(2)}};
                     while (team.step() < steps) {
                         const rill::view crew = team.settle(state);
                         all.members[self] = crew.members.size();
                         if (team.step() >= steps) break;
                         net.sleep_until(net.now() + pause);
                         const std::vector<double> own(20, static_cast<double>(net.rank() + 1));
                         std::vector<double> sum(20);
                         if (!team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) continue;
                         all.committed[self].push_back(sum[3]);
                         state.add(sum);
                     }
                     team.finish();
                 } catch (const rill::error& thrown) {
                     all.wrong += thrown.what();
                 }
             });
    return all;
}

}  // namespace

TEST_CASE("elastic on backup_tree: a cut link takes no member out, and every step is committed by all") {
    for (const auto& [one, other] : {std::pair{1, 0}, std::pair{2, 1}, std::pair{4, 0}}) {
        CAPTURE(one);
        const job seen = train(7, 12, {{faults::cut_between(one, other).at(milliseconds(5))}});
        CHECK(seen.wrong == "");
        for (std::size_t rank = 0; rank < 7; ++rank) {
            CHECK(seen.members[rank] == 7);
            CHECK(seen.committed[rank] == std::vector<double>(12, 28.0));
        }
    }
}

TEST_CASE("elastic on backup_tree: the survivors of a rank that dies go on, with the same sums") {
    for (const int victim : {0, 1, 5}) {
        CAPTURE(victim);
        const job seen = train(7, 12, {{faults::kill(victim).at(milliseconds(6))}});
        CHECK(seen.wrong == "");
        const std::size_t witness = victim == 0 ? 1 : 0;
        CHECK(seen.committed[witness].size() == 12);
        for (std::size_t rank = 0; rank < 7; ++rank)
            if (rank != static_cast<std::size_t>(victim)) CHECK(seen.committed[rank] == seen.committed[witness]);
        CHECK(seen.committed[witness].back() == 28.0 - (victim + 1));
    }
}

TEST_CASE("elastic on backup_tree: news of the earlier life of a seat that come late end no step of the later one") {
    for (int delay = 0; delay < 20; ++delay) {
        CAPTURE(delay);
        // Ranks 4 and 2 are no neighbours in the tree.
        rill::fault_plan plan{{faults::kill(4).at(milliseconds(5)), faults::restart(4).at(milliseconds(20)),
                               faults::delay_up_to(milliseconds(2 * delay)).on(4, 2).at(milliseconds(19))}};
        plan.seed = static_cast<std::uint64_t>(delay);
        const job seen = train(5, 60, plan, milliseconds(1));
        CHECK(seen.wrong == "");
        for (std::size_t rank = 0; rank < 5; ++rank) CHECK(seen.members[rank] == 5);
    }
}

TEST_CASE("elastic on backup_tree: a rank dies while two others are known to be cut off from each other: both stay") {
    for (int one = 0; one < 5; ++one)
        for (int other = 0; other < one; ++other)
            for (int victim = 0; victim < 5; ++victim) {
                if (victim == one || victim == other) continue;
                CAPTURE(one);
                CAPTURE(other);
                CAPTURE(victim);
                const job seen = train(5, 12,
                                       {{faults::cut_between(one, other).at(milliseconds(5)),
                                         faults::kill(victim).at(milliseconds(4000))}},
                                       milliseconds(500));
                CHECK(seen.wrong == "");
                for (int rank = 0; rank < 5; ++rank)
                    if (rank != victim) CHECK(seen.members[static_cast<std::size_t>(rank)] == 4);
            }
}
