// Rounds that ask a sample of their ranks, as FedAvg does.
#include <rill/aggregate/mean.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/sampled.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace sampled_rounds {

using rill::simulated::endpoint;
using rill::topology::star;
using rill::topology::tree;
using namespace rill::straggler;

namespace {

constexpr std::size_t dimension = 1000;
constexpr sampled half{.fraction = 0.5};

/// What a worker holds of the data: so many points counts its contribution.
double points_of(rill::rank_t rank) { return rank == 0 ? 0 : 10.0 * rank; }

/// Where local steps on a worker's points lead from `model`.
double trained(double model, rill::rank_t rank, std::size_t i) {
    return 0.5 * (model + static_cast<double>(rill::mix64(static_cast<std::uint64_t>(rank), i) % 64));
}

struct history {
    std::vector<std::vector<rill::rank_t>> asked;  ///< in each round
    std::vector<double> model;
    std::vector<rill::round_receipt> of_root;
    std::vector<std::vector<rill::round_receipt>> of_ranks;
};

/// FedAvg: the ranks that are asked train, and upload by how much the model has changed, weighed by their points.
template <class Codec>
history federated(int ranks, std::uint64_t rounds, const Codec& policy) {
    history seen;
    seen.of_ranks.resize(static_cast<std::size_t>(ranks));
    rill::simulated::run(ranks, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds fed{workers, star{}, wait_all{}, fresh{}, solo{}, half};
        auto codec = policy.template bind<double>(dimension);
        std::vector<double> model(dimension), change(dimension), update(dimension);
        while (fed.next(model)) {
            const double points = points_of(net.rank());
            for (std::size_t i = 0; i < dimension; ++i)
                change[i] = points * (trained(model[i], net.rank(), i) - model[i]);
            const auto done = fed.reduce(change, update, codec, rill::aggregate::mean{}, {.weight = points});
            seen.of_ranks[static_cast<std::size_t>(net.rank())].push_back(done);
            if (!fed.is_root()) continue;
            for (std::size_t i = 0; i < dimension; ++i) model[i] += update[i];
            seen.asked.emplace_back();
            for (const rill::contributor& each : done.in) seen.asked.back().push_back(each.rank);
            if (fed.number() == rounds) fed.end();
            seen.model = model;
        }
    });
    return seen;
}

/// The same without messages. `marks`: 1 where the mask of a round chooses an entry.
template <class Marks>
std::vector<double> plain(const history& seen, Marks&& marks) {
    std::vector<double> model(dimension);
    for (std::size_t round = 0; round < seen.asked.size(); ++round) {
        const std::vector<double> chosen = marks(round + 1);
        for (std::size_t i = 0; i < dimension; ++i) {
            double sum = 0, points = 0;
            bool is_first = true;
            for (const rill::rank_t rank : seen.asked[round]) {
                const double change = points_of(rank) * (trained(model[i], rank, i) - model[i]);
                sum = is_first ? change : sum + change;
                is_first = false;
                points += points_of(rank);
            }
            if (chosen[i] != 0) model[i] += sum / points;
        }
    }
    return model;
}

}  // namespace

TEST_CASE("FedAvg: half of the workers train in a round, and the others get no message") {
    const int ranks = 33, rounds = 40;
    const history seen = federated(ranks, rounds, rill::compress::top_k{.density = 1});
    std::vector<std::size_t> times(static_cast<std::size_t>(ranks));
    for (const auto& asked : seen.asked) {
        CHECK(asked.size() == 16);
        for (const rill::rank_t rank : asked) ++times[static_cast<std::size_t>(rank)];
    }
    CHECK(seen.asked[0] != seen.asked[1]);
    CHECK(*std::min_element(times.begin() + 1, times.end()) > 8);
    CHECK(*std::max_element(times.begin() + 1, times.end()) < 32);
    for (const auto& done : seen.of_ranks[0]) {
        CHECK(done.wire.messages_sent == 16);
        CHECK(done.wire.messages_received == 16);
    }
    for (std::size_t rank = 1; rank < times.size(); ++rank) CHECK(seen.of_ranks[rank].size() == times[rank]);
    CHECK(seen.model == plain(seen, [](std::uint64_t) { return std::vector<double>(dimension, 1); }));
}

TEST_CASE("S-FedAvg: a shared mask, the model down and the chosen values up") {
    const rill::compress::random_mask mask{.density = 0.1, .seed = 3};
    const history seen = federated(9, 30, mask);
    const auto marks = [&](std::uint64_t round) {
        auto codec = mask.bind<double>(dimension);
        codec.begin(round);
        std::vector<double> chosen(dimension);
        codec.decode(std::vector<double>(codec.coded_dimension(), 1), chosen);
        return chosen;
    };
    CHECK(seen.model == plain(seen, marks));

    // A worker that is asked gets N values and sends those of the mask: f (N + |mask|) for each worker and round.
    std::vector<std::uint64_t> headers_down, headers_up;
    for (std::size_t rank = 1; rank < 9; ++rank)
        for (const rill::round_receipt& each : seen.of_ranks[rank]) {
            CHECK(each.wire.messages_received == 1);
            CHECK(each.wire.messages_sent == 1);
            const std::vector<double> entries = marks(each.operation_number);
            const auto chosen = static_cast<std::uint64_t>(std::accumulate(entries.begin(), entries.end(), 0.0));
            headers_down.push_back(each.wire.bytes_received - sizeof(double) * dimension);
            headers_up.push_back(each.wire.bytes_sent - sizeof(double) * chosen);
        }
    CHECK(headers_down.size() == 30 * 4);
    CHECK(headers_down == std::vector<std::uint64_t>(headers_down.size(), headers_down[0]));
    CHECK(headers_up == std::vector<std::uint64_t>(headers_up.size(), headers_up[0]));
    CHECK(std::max(headers_down[0], headers_up[0]) < 300);
}

TEST_CASE("FedAvg: what top-k leaves out stays with the workers, whichever rounds they are in") {
    double put_in = 0, in_results = 0, left = 0;
    std::vector<std::uint64_t> rounds_of(7);
    rill::simulated::run(7, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds fed{workers, star{}, wait_all{}, fresh{}, solo{}, half};
        auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}}.bind<double>(50);
        std::vector<double> model(1), own(50), update(50);
        while (fed.next(model)) {
            ++rounds_of[static_cast<std::size_t>(net.rank())];
            for (std::size_t i = 0; i < own.size(); ++i) {
                own[i] = static_cast<double>(rill::mix64(static_cast<std::uint64_t>(net.rank()), fed.number(), i) % 11);
                if (!fed.is_root()) put_in += own[i];
            }
            fed.reduce(own, update, codec, rill::aggregate::sum{}, {.weight = fed.is_root() ? 0.0 : 1.0});
            if (!fed.is_root()) continue;
            in_results += std::accumulate(update.begin(), update.end(), 0.0);
            if (fed.number() == 25) fed.end();
        }
        if (!fed.is_root()) left += std::accumulate(codec.residual().begin(), codec.residual().end(), 0.0);
    });
    CHECK(put_in == in_results + left);
    CHECK(left > 0);
    CHECK(rounds_of[0] == 25);
    CHECK(std::accumulate(rounds_of.begin() + 1, rounds_of.end(), std::uint64_t{0}) == 25 * 3);
}

TEST_CASE("rounds: a late rank that is not asked again waits, and gets no message") {
    // Rank 3 is late in each round that asks it. Its answer comes in a later round, which gives it the state only if
    // that round asks it.
    std::vector<std::uint64_t> messages;
    std::uint64_t given = 0;
    rill::simulated::run(5, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, star{}, tolerate{1}, fresh{}, solo{}, half};
        std::vector<double> model(10), own(10, 1), update(10);
        while (steps.next(model)) {
            given += steps.is_root() ? 0 : 1;
            net.sleep_until(net.now() + rill::milliseconds(net.rank() == 3 ? 35 : 10));
            const auto done = steps.reduce(own, update);
            if (!steps.is_root()) continue;
            messages.push_back(done.wire.messages_sent);
            CHECK(done.contributors >= 2);
            CHECK(done.contributors <= 3);
            CHECK(update[0] == done.contributors);
            if (steps.number() == 60) steps.end();
        }
    });
    CHECK(*std::max_element(messages.begin(), messages.end()) <= 3);  // two states, and that a round is over
    CHECK(given <= 2 * 60);
    CHECK(given > 60);
}

TEST_CASE("rounds: of a tree the root asks its children, each with all that are below it") {
    rill::simulated::run(15, {}, [](endpoint& net) {
        rill::group workers{net, star{}};
        rill::rounds steps{workers, tree{2}, wait_all{}, fresh{}, solo{}, half};
        std::vector<std::int64_t> model(1), own(4, std::int64_t{1} << net.rank()), update(4);
        bool has_seen_left = false, has_seen_right = false;
        while (steps.next(model)) {
            const auto done = steps.reduce(own, update);
            if (!steps.is_root()) continue;
            CHECK(done.contributors == 8);
            std::int64_t left = 1, right = 1;  // with the root
            for (rill::rank_t rank = 1; rank < 15; ++rank) {
                rill::rank_t top = rank;
                while (tree{2}.parent(15, top) != 0) top = tree{2}.parent(15, top);
                (top == tree{2}.child(15, 0, 0) ? left : right) += std::int64_t{1} << rank;
            }
            has_seen_left = has_seen_left || update[0] == left;
            has_seen_right = has_seen_right || update[0] == right;
            CHECK((update[0] == left || update[0] == right));
            if (steps.number() == 20) steps.end();
        }
        if (steps.is_root()) CHECK((has_seen_left && has_seen_right));
    });
}

TEST_CASE("rounds: another sample on one rank is a mismatch, and one of nobody is refused") {
    std::vector<rill::rank_t> culprits;
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        const sampled other{.fraction = net.rank() == 2 ? 0.25 : 0.5};
        try {
            const rill::rounds steps{workers, star{}, wait_all{}, fresh{}, solo{}, other};
        } catch (const rill::mismatch& e) {
            CHECK(std::string(e.what()).find("participation") != std::string::npos);
            culprits.push_back(e.culprit());
        }
    });
    CHECK(culprits == std::vector<rill::rank_t>(4, 2));
    rill::simulated::run(1, {}, [&](endpoint& net) {
        rill::group workers{net, star{}};
        const auto make = [&](double fraction) {
            const rill::rounds steps{workers, star{}, wait_all{}, fresh{}, solo{}, sampled{fraction}};
        };
        CHECK_THROWS_AS(make(0), rill::contract_violation);
        CHECK_THROWS_AS(make(std::numeric_limits<double>::quiet_NaN()), rill::contract_violation);
        CHECK_NOTHROW(make(0.1));  // of no children nobody is asked
    });
}

}  // namespace sampled_rounds
