// Gossip under every kind of fault: each model is that of a whole number of rounds, which the rank knows, and who fails
// names what has gone wrong.
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace testing = rill::testing;

namespace {

constexpr std::size_t dimension = 24;
using models = std::vector<std::vector<double>>;

/// Whole numbers that can be halved as often as there are rounds.
models first_models(int ranks) {
    models all(static_cast<std::size_t>(ranks), std::vector<double>(dimension));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i)
            all[rank][i] = static_cast<double>(rill::mix64(rank, i) % 1000 << 20U);
    return all;
}

/// The models after so many rounds, without messages. Sums of such numbers are exact in any order.
template <class Mix>
models plain(const Mix& mixing, const rill::compress::random_mask& mask, int ranks, std::uint64_t rounds) {
    models all = first_models(ranks);
    auto bound = mixing.bind(ranks, rill::random_key{0}.derive(rill::fingerprint("gossip")));
    auto codec = mask.bind<double>(dimension);
    rill::mixing_row row;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const models before = all;
        codec.begin(round);
        std::vector<double> chosen(codec.coded_dimension(), 1.0), marks(dimension);
        codec.write_back(std::span<const double>(chosen), marks);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            bound.fill(round, static_cast<rill::rank_t>(rank), row);
            for (std::size_t i = 0; i < dimension; ++i) {
                if (marks[i] == 0) continue;
                all[rank][i] = row.own_weight * before[rank][i];
                for (const auto& [peer, weight] : row.senders)
                    all[rank][i] += weight * before[static_cast<std::size_t>(peer)][i];
            }
        }
    }
    return all;
}

/// RILL_GOSSIP_RUNS=1000000 explores further.
std::uint64_t runs_in_all() {
    const char* const asked = std::getenv("RILL_GOSSIP_RUNS");
    if (asked != nullptr) return static_cast<std::uint64_t>(std::atoll(asked));
#ifdef RILL_TEST_SANITIZED
    return 400;
#else
    return 10'000;
#endif
}

template <class Mix>
void explore(const Mix& mixing, double density) {
    testing::protocol_test test(Mix::name, {.most_ranks = 8});
    const rill::compress::random_mask mask{.density = density};
    const auto on_one_rank = [&](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.restarts() > 0) return;
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        const std::uint64_t last = 1 + of.seed % 12;
        mine.attempt({.name = "rounds"}, [&]() -> testing::call_result {
            rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10)}};
            rill::gossip replica{workers, mixing};
            auto codec = mask.bind<double>(dimension);
            const auto rank = static_cast<std::size_t>(net.rank());
            std::vector<double> model = first_models(net.size())[rank];
            const auto is_of_its_round = [&] {
                return model == plain(mixing, mask, net.size(), replica.round())[rank];
            };
            try {
                while (replica.round() < last) {
                    net.compute(1);
                    replica.mix(model, codec);
                }
            } catch (const rill::error&) {
                if (!is_of_its_round()) mine.complaints.push_back("its model is of no whole round");
                throw;
            }
            return {.is_exact = is_of_its_round()};
        });
    };
    const std::uint64_t seeds = runs_in_all() / (5 * std::size(testing::every_fault_kind));
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const std::string report = test.run(kind, seed, on_one_rank);
            CHECK_MESSAGE(report.empty(), testing::name(kind), ": ", report);
        }
}

}  // namespace

TEST_CASE("gossip under faults: pairs are exact or name the fault") { explore(rill::topology::random_matching{}, 0.3); }

TEST_CASE("gossip under faults: the exponential graph is exact or names the fault") {
    explore(rill::topology::exponential{}, 1);
}

TEST_CASE("gossip under faults: a ring, with whole models and with a mask, is exact or names the fault") {
    explore(rill::topology::ring_neighbours{.own = 0.5}, 1);
    explore(rill::topology::ring_neighbours{.own = 0.5}, 0.4);
}

TEST_CASE("gossip under faults: changing partners are exact or name the fault") {
    explore(rill::topology::rotating{}, 0.5);
}
