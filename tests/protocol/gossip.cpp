// Gossip against a plain program that mixes the models of all ranks in one place, bit for bit.
#include <rill/collective/group.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using rill::simulated::endpoint;
using rill::topology::exponential;
using rill::topology::metropolis;
using rill::topology::random_matching;
using rill::topology::ring;
using rill::topology::ring_neighbours;
using rill::topology::rotating;

namespace {

constexpr std::uint64_t seed = 11;

template <class T>
using models = std::vector<std::vector<T>>;

template <class T>
models<T> first_models(int ranks, std::size_t dimension) {
    models<T> all(static_cast<std::size_t>(ranks), std::vector<T>(dimension));
    std::uint64_t number = 0;
    for (auto& model : all)
        for (T& value : model) value = static_cast<T>(static_cast<int>(rill::mix64(++number) % 2001) - 1000) / T{7};
    return all;
}

/// What a round writes: all entries, or those of the mask.
template <class T>
std::vector<std::size_t> mixed_entries(std::size_t dimension, const rill::compress::random_mask* mask,
                                       std::uint64_t round) {
    std::vector<std::size_t> entries(dimension);
    std::iota(entries.begin(), entries.end(), std::size_t{0});
    if (mask == nullptr) return entries;
    auto codec = mask->bind<T>(dimension);
    codec.begin(round);
    std::vector<T> ones(codec.coded_dimension(), T{1}), marks(dimension);
    codec.write_back(std::span<const T>(ones), marks);
    std::erase_if(entries, [&](std::size_t i) { return marks[i] == T{0}; });
    return entries;
}

/// One round, without messages.
template <class T, class Bound>
void mix_plainly(models<T>& all, Bound& bound, std::uint64_t round, const rill::compress::random_mask* mask) {
    const models<T> before = all;
    rill::mixing_row row;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        bound.fill(round, static_cast<rill::rank_t>(rank), row);
        std::vector<rill::mixing_end> terms = row.senders;
        terms.push_back({static_cast<rill::rank_t>(rank), row.own_weight});
        std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.peer < b.peer; });
        for (const std::size_t i : mixed_entries<T>(before[rank].size(), mask, round)) {
            bool is_first = true;
            for (const auto& [peer, weight] : terms) {
                const volatile T term = static_cast<T>(weight) * before[static_cast<std::size_t>(peer)][i];
                all[rank][i] = is_first ? T{term} : static_cast<T>(all[rank][i] + term);
                is_first = false;
            }
        }
    }
}

/// After so many rounds, without messages.
template <class T, class Mix>
models<T> plain(const Mix& mixing, models<T> all, std::uint64_t rounds, const rill::compress::random_mask* mask) {
    auto bound = mixing.bind(static_cast<int>(all.size()), rill::random_key{seed}.derive(rill::fingerprint("gossip")));
    for (std::uint64_t round = 0; round < rounds; ++round) mix_plainly(all, bound, round, mask);
    return all;
}

/// Calls `use(gossip, model, mix)` on each rank, where `mix()` makes a round; returns the models.
template <class T, class Mix, class Run>
models<T> mixed(Run run, const Mix& mixing, const models<T>& first, std::uint64_t rounds,
                const rill::compress::random_mask* mask) {
    models<T> all = first;
    run(static_cast<int>(first.size()), [&](auto& net) {
        rill::group workers{net, ring{}, {.seed = seed}};
        rill::gossip replica{workers, mixing};
        std::vector<T>& model = all[static_cast<std::size_t>(net.rank())];
        if (mask == nullptr) {
            for (std::uint64_t round = 0; round < rounds; ++round) replica.mix(model);
        } else {
            auto codec = mask->bind<T>(model.size());
            for (std::uint64_t round = 0; round < rounds; ++round) replica.mix(model, codec);
        }
        CHECK(replica.round() == rounds);
    });
    return all;
}

const auto simulated = [](int ranks, auto body) { rill::simulated::run(ranks, {}, body); };
const auto threads = [](int ranks, auto body) { rill::in_process::run(ranks, body); };

template <class T, class Mix>
void equals_plain(const Mix& mixing, int ranks) {
    CAPTURE(Mix::name);
    CAPTURE(ranks);
    const rill::compress::random_mask mask{.density = 0.3, .seed = 5};
    for (const std::size_t dimension : {std::size_t{0}, std::size_t{1}, std::size_t{67}}) {
        CAPTURE(dimension);
        const models<T> first = first_models<T>(ranks, dimension);
        CHECK(mixed(simulated, mixing, first, 7, nullptr) == plain(mixing, first, 7, nullptr));
        CHECK(mixed(simulated, mixing, first, 7, &mask) == plain(mixing, first, 7, &mask));
        CHECK(mixed(threads, mixing, first, 3, &mask) == plain(mixing, first, 3, &mask));
    }
}

double distance_from_mean(const models<double>& all) {
    double sum = 0;
    for (std::size_t i = 0; i < all[0].size(); ++i) {
        double mean = 0;
        for (const auto& model : all) mean += model[i] / static_cast<double>(all.size());
        for (const auto& model : all) sum += (model[i] - mean) * (model[i] - mean);
    }
    return sum;
}

}  // namespace

TEST_CASE("gossip: models are those of a plain program, bit for bit") {
    for (const int ranks : {1, 2, 3, 5, 8}) {
        equals_plain<float>(ring_neighbours{}, ranks);
        equals_plain<float>(exponential{}, ranks);
        equals_plain<double>(rotating{}, ranks);
        equals_plain<float>(random_matching{}, ranks);
    }
    equals_plain<double>(metropolis{{{0, 1}, {1, 2}, {1, 3}, {3, 4}}}, 6);
}

TEST_CASE("gossip: what two ranks exchange is equal on both, and the sum stays") {
    for (const int ranks : {2, 7, 16}) {
        models<double> all(static_cast<std::size_t>(ranks), std::vector<double>(40));
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            for (std::size_t i = 0; i < 40; ++i) all[rank][i] = static_cast<double>(rill::mix64(rank, i) % 1000 << 25U);
        const auto sum = [](const models<double>& of) {
            std::vector<double> made(of[0].size());
            for (const auto& model : of)
                for (std::size_t i = 0; i < made.size(); ++i) made[i] += model[i];
            return made;
        };
        const auto after = mixed(simulated, random_matching{}, all, 20, nullptr);
        CHECK(sum(after) == sum(all));  // whole numbers with room for 20 halvings
        const auto once = mixed(threads, random_matching{}, all, 1, nullptr);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            const auto alike = std::count(once.begin(), once.end(), once[rank]);
            CHECK(alike == (once[rank] == all[rank] ? 1 : 2));
        }
    }
}

TEST_CASE("gossip: a mask shrinks the distance as the rate says") {
    // Per round by 1 - (1 - rho) / c, where rho is the rate of random matchings and the mask keeps one entry of c.
    for (const double density : {1.0, 0.1}) {
        const rill::compress::random_mask mask{.density = density, .seed = 3};
        const int ranks = 16, rounds = density == 1 ? 8 : 60;
        const models<double> first = first_models<double>(ranks, 4000);
        const auto after = mixed(simulated, random_matching{}, first, static_cast<std::uint64_t>(rounds),
                                 density == 1 ? nullptr : &mask);
        const double seen = std::pow(distance_from_mean(after) / distance_from_mean(first), 1.0 / rounds);
        const double rho = 0.5 * (1 - 1.0 / (ranks - 1));
        CHECK(seen == doctest::Approx(1 - (1 - rho) * density).epsilon(0.05));
    }
}

TEST_CASE("gossip: the receipt lists models, weights and traffic") {
    rill::simulated::run(5, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, ring_neighbours{}};
        std::vector<float> model(1000);
        replica.mix(model);
        const rill::round_receipt& done = replica.mix(model);
        CHECK(done.operation_number == 1);
        CHECK(done.contributors == 3);
        CHECK(done.weight == doctest::Approx(1));
        REQUIRE(done.in.size() == 3);
        CHECK(std::is_sorted(done.in.begin(), done.in.end(), [](auto& a, auto& b) { return a.rank < b.rank; }));
        CHECK(done.wire.messages_sent == 2);
        CHECK(done.wire.messages_received == 2);
        CHECK(done.wire.bytes_sent > 8000);
        CHECK(done.wire.bytes_sent < 8400);
        CHECK(done.wire.bytes_sent == done.wire.bytes_received);
    });
}

TEST_CASE("gossip: another mixing, model or codec on one rank is a mismatch") {
    const auto fails_by = [](auto body, const char* why) {
        rill::simulated::run(
            4, {}, [&](endpoint& net) { CHECK_THROWS_WITH_AS(body(net), doctest::Contains(why), rill::mismatch); });
    };
    fails_by(
        [](endpoint& net) {
            rill::group workers{net, ring{}};
            const metropolis own{net.rank() == 2 ? decltype(metropolis::edges){{0, 1}} : decltype(metropolis::edges){}};
            rill::gossip replica{workers, own};
        },
        "rank 2 calls with another mixing");
    for (const rill::rank_t odd : {2, 3})  // what the odd rank lends is read after it has thrown
        fails_by(
            [odd](endpoint& net) {
                rill::group workers{net, ring{}};
                rill::gossip replica{workers, ring_neighbours{}};
                std::vector<float> model(net.rank() == odd ? 11 : 10);
                for (int round = 0; round < 9; ++round) replica.mix(model);
            },
            "values, rank ");
    fails_by(
        [](endpoint& net) {
            rill::group workers{net, ring{}};
            rill::gossip replica{workers, ring_neighbours{}};
            if (net.rank() == 1) replica.resume_at(3);
            std::vector<float> model(10);
            for (int round = 0; round < 9; ++round) replica.mix(model);
        },
        ", rank ");
    for (const bool by_seed : {true, false})
        fails_by(
            [&](endpoint& net) {
                rill::group workers{net, ring{}};
                rill::gossip replica{workers, ring_neighbours{}};
                std::vector<float> model(100);
                const bool differs = net.rank() == 1;
                auto codec = rill::compress::random_mask{.density = differs && !by_seed ? 0.11 : 0.1,
                                                         .seed = differs && by_seed ? 1U : 0U}
                                 .bind(100);
                for (int round = 0; round < 9; ++round) replica.mix(model, codec);
            },
            by_seed ? "with another seed of its codec than rank " : "with another density of its codec than rank ");
    fails_by(
        [](endpoint& net) {
            rill::group workers{net, ring{}};
            rill::gossip replica{workers, ring_neighbours{}};
            if (net.rank() == 1) {
                std::vector<double> model(10);
                for (int round = 0; round < 9; ++round) replica.mix(model);
            } else {
                std::vector<float> model(10);
                for (int round = 0; round < 9; ++round) replica.mix(model);
            }
        },
        "with another type of elements than rank ");
}

/// Rank 1 awaits a model of itself.
struct of_itself : ring_neighbours {
    struct bound {
        ring_neighbours::bound inner;
        void fill(std::uint64_t round, rill::rank_t rank, rill::mixing_row& row) {
            inner.fill(round, rank, row);
            if (rank == 1) row.senders.front().peer = 1;
        }
    };
    bound bind(int size, rill::random_key key) const { return {ring_neighbours::bind(size, key)}; }
};

TEST_CASE("gossip: a row that cannot be mixed by is named") {
    rill::simulated::run(4, {}, [&](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, of_itself{}};
        std::vector<double> model(3, net.rank());
        const auto mix = [&] {
            for (int round = 0; round < 5; ++round) replica.mix(model);
        };
        const char* const why = "the mixing's row of rank 1 is wrong: a sender is no other rank";
        if (net.rank() == 1)
            CHECK_THROWS_WITH_AS(mix(), doctest::Contains(why), rill::contract_violation);
        else
            CHECK_THROWS_WITH_AS(mix(), doctest::Contains(why), rill::error);
    });
}

TEST_CASE("gossip: a value that is not finite is named, and nothing is mixed") {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
        rill::simulated::run(4, {}, [&](endpoint& net) {
            rill::group workers{net, ring{}};
            rill::gossip replica{workers, ring_neighbours{}};
            std::vector<double> model(9, net.rank());
            replica.mix(model);
            if (net.rank() == 3) model[7] = bad;
            const auto before = model;
            CHECK_THROWS_WITH_AS(replica.mix(model),
                                 doctest::Contains("rank 3 has a value that is not finite at "
                                                   "coordinate 7"),
                                 rill::invalid_value);
            CHECK(replica.round() == 1);
            if (net.rank() != 3) CHECK(model == before);
            CHECK_THROWS_AS(replica.mix(model), rill::error);  // the gossip has ended
        });
}

TEST_CASE("gossip: after a failure each model is that of a whole number of rounds") {
    const int ranks = 6;
    const models<double> first = first_models<double>(ranks, 50);
    const rill::compress::random_mask mask{.density = 0.4, .seed = 2};
    int failures = 0;
    for (std::uint64_t messages = 0; messages < 40; ++messages)
        for (const bool is_masked : {false, true}) {
            rill::simulated::network network;
            network.faults.faults = {rill::faults::kill(2).after(messages)};
            CAPTURE(messages);
            try {
                rill::simulated::run(ranks, network, [&](endpoint& net) {
                    rill::group workers{net, ring{}, {.timeout = rill::seconds(10), .seed = seed}};
                    rill::gossip replica{workers, ring_neighbours{}};
                    std::vector<double> model = first[static_cast<std::size_t>(net.rank())];
                    auto codec = mask.bind<double>(model.size());
                    try {
                        for (int round = 0; round < 12; ++round)
                            is_masked ? replica.mix(model, codec) : replica.mix(model);
                    } catch (const rill::error& failed) {
                        ++failures;
                        CHECK(failed.notice().culprit == 2);
                    }
                    const auto wanted = plain(ring_neighbours{}, first, replica.round(), is_masked ? &mask : nullptr);
                    CHECK(model == wanted[static_cast<std::size_t>(net.rank())]);
                });
            } catch (const rill::error&) {  // of the constructors, or of rank 2
            }
        }
    CHECK(failures > 100);
}

TEST_CASE("gossip: a rank that mixes no more is found by the chain of waits") {
    rill::simulated::run(30, {}, [](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = rill::seconds(10)}};
        rill::gossip replica{workers, ring_neighbours{}};
        std::vector<float> model(10);
        const auto mix_on = [&] {
            for (int round = 0; round < 40; ++round) {
                if (net.rank() == 7 && round == 20) net.sleep_until(net.now() + rill::seconds(1000));
                replica.mix(model);
            }
        };
        CHECK_THROWS_WITH_AS(mix_on(), doctest::Contains("rank 7"), rill::timeout);
    });
}

TEST_CASE("gossip: a rank that has returned from its body is named") {
    try {
        rill::simulated::run(6, {}, [](endpoint& net) {
            rill::group workers{net, ring{}, {.timeout = rill::seconds(10)}};
            rill::gossip replica{workers, ring_neighbours{}};
            std::vector<float> model(10);
            for (int round = 0; round < (net.rank() == 4 ? 3 : 30); ++round) replica.mix(model);
        });
        FAIL("no error");
    } catch (const rill::error& failed) {
        CHECK(failed.notice().culprit == 4);
        CHECK(std::string(failed.what()).find("rank 4 has returned") != std::string::npos);
    }
}

TEST_CASE("gossip: ranks of a large ring drift apart, and nothing stops them") {
    // A rank that pauses holds up others by their distance from it: far ones are 70 rounds ahead.
    rill::simulated::run(320, {}, [](endpoint& net) {
        rill::group workers{net, ring{}, {.timeout = rill::seconds(10)}};
        rill::gossip replica{workers, ring_neighbours{}};
        std::vector<float> model(4, static_cast<float>(net.rank()));
        for (int round = 0; round < 170; ++round) {
            if (net.rank() == 0 && round == 5) net.sleep_until(net.now() + rill::seconds(8));
            replica.mix(model);
            if (net.rank() == 160 && round == 75) CHECK(net.now() - rill::time_point{} < rill::seconds(8));
        }
        CHECK(replica.round() == 170);
    });
}

TEST_CASE("gossip: goes on from a number of rounds") {
    const models<float> first = first_models<float>(4, 20);
    const rill::compress::random_mask mask{.density = 0.5};
    const auto wanted = plain(random_matching{}, first, 9, &mask);
    models<float> all = plain(random_matching{}, first, 4, &mask);
    rill::in_process::run(4, [&](auto& net) {
        rill::group workers{net, ring{}, {.seed = seed}};
        rill::gossip replica{workers, random_matching{}};
        replica.resume_at(4);
        auto codec = mask.bind(20);
        std::vector<float>& model = all[static_cast<std::size_t>(net.rank())];
        while (replica.round() < 9) replica.mix(model, codec);
    });
    CHECK(all == wanted);
}
