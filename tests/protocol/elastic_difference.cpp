// Members of an elastic team whose states differ: they are named, and mended, or training ends.
#include <rill/collective/all_reduce.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace faults = rill::faults;
namespace sim = rill::simulated;
using elastic_scene::model;
using rill::rank_t;

namespace {

constexpr int ranks = 5;
constexpr rank_t dies = 4;

/// One life of a rank: how it ends.
struct ending {
    model state{};
    std::string error{};
    rank_t culprit = rill::no_rank;
    rank_t members = 0;
    std::uint64_t bytes_sent = 0;
};

/// Five ranks take ten steps, of which the last one dies in the fifth. When the view has ended, each rank damages its
/// state by what `damage` says. Returns how the others end.
template <class Model = model>
std::vector<ending> train(const std::vector<double>& damage, rill::elastic_options options,
                          bool is_first_view = false) {
    std::vector<ending> all(ranks);
    options.timeout = rill::seconds(20);
    sim::network net_of_all{.jitter = rill::microseconds(300)};
    net_of_all.silence = rill::seconds(1);
    net_of_all.longest = rill::seconds(50);
    if (!is_first_view) net_of_all.faults.faults = {faults::kill(dies).at(rill::microseconds(4200))};
    sim::run(ranks, net_of_all, [&](auto& net) {
        const auto self = static_cast<std::size_t>(net.rank());
        ending& own = all[self];
        Model state;
        if (is_first_view) state.values[7] += damage[self];
        try {
            rill::elastic team{net, rill::topology::ring{}, options};
            bool is_to_damage = !is_first_view;
            while (team.step() < 10) {
                team.settle(state);
                net.sleep_until(net.now() + rill::milliseconds(1));
                const std::vector<double> mine(20, net.rank() + 1.0);
                std::vector<double> sum(20);
                if (team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); }))
                    state.add(sum);
                else if (std::exchange(is_to_damage, false))
                    state.values[7] += damage[self];
                else if (damage[self] == 0)
                    net.sleep_until(net.now() + rill::milliseconds(20));  // and takes up no view
            }
            own.members = static_cast<rank_t>(team.view().members.size());
            team.finish();
        } catch (const rill::error& thrown) {
            own.error = thrown.what();
            own.culprit = thrown.culprit();
        }
        own.state = state;
        own.bytes_sent = net.counted().bytes_sent;
    });
    if (!is_first_view) all.pop_back();
    return all;
}

/// Says that it has taken another state, and has not.
struct stubborn : model {
    void unpack(rill::byte_view bytes) {
        const double own = values[7];
        model::unpack(bytes);
        values[7] = own;
    }
};

/// Its copy is larger than all that the ranks send each other else.
struct large : model {
    static constexpr std::size_t padding = 200'000;

    rill::buffer pack() const {
        const rill::buffer own = model::pack();
        rill::buffer bytes(own.size() + padding);
        std::fill(std::copy(own.begin(), own.end(), bytes.begin()), bytes.end(), std::byte{});
        return bytes;
    }
    void unpack(rill::byte_view bytes) { model::unpack(bytes.first(bytes.size() - padding)); }
};

constexpr rill::elastic_options ends{}, mends{.on_difference = rill::on_difference::mend};

}  // namespace

TEST_CASE("a member whose state differs is named on all, and training ends") {
    for (const ending& each : train({0, 0, 1, 0, 0}, ends)) {
        CHECK(each.error == "rill: in epoch 1 of ranks 0-3: the state of rank 2 is not that of the others");
        CHECK(each.culprit == 2);
    }
}

TEST_CASE("ranks that begin with different states are named before the first step") {
    for (const ending& each : train({0, 1, 0, 0, 2}, ends, true)) {
        CHECK(each.error == "rill: in epoch 0 of ranks 0-4: the state of rank 1, of rank 4 is not that of the others");
        CHECK(each.state.steps == 0);
    }
}

TEST_CASE("a member whose state differs gets that of the others, where that is chosen") {
    const model right = train({0, 0, 0, 0, 0}, ends).front().state;
    for (const std::size_t catch_up_bytes : {std::size_t{0}, std::size_t{1} << 20U})
        for (const std::vector<double>& damage : {std::vector<double>{1, 0, 0, 0, 0}, {0, 0, 0, -3, 0}}) {
            rill::elastic_options chosen = mends;
            chosen.catch_up_bytes = catch_up_bytes;
            for (const ending& each : train(damage, chosen)) {
                CHECK(each.error == "");
                CHECK(each.members == 4);
                CHECK(each.state == right);
            }
        }
}

TEST_CASE("several members are mended at once") {
    for (const ending& each : train({1, 0, 0, 2, 0}, mends, true)) {
        CHECK(each.error == "");
        CHECK(each.state.steps == 10);
        CHECK(each.state.values[7] == each.state.values[6]);
    }
}

TEST_CASE("members that are mended at once get the state of different ranks") {
    const std::vector<ending> all = train<large>({1, 0, 0, 2, 0}, mends, true);
    for (rank_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        const std::uint64_t copies = all[static_cast<std::size_t>(rank)].bytes_sent / large::padding;
        CHECK(copies == (rank == 1 || rank == 4 ? 1 : 0));  // the next ones after ranks 0 and 3
    }
}

TEST_CASE("without a majority training ends, whatever is chosen") {
    for (const rill::elastic_options& chosen : {ends, mends})
        for (const ending& each : train({0, 0, 1, 1, 0}, chosen)) {
            CHECK(each.error == "rill: in epoch 1 of ranks 0-3: no state is that of more than half of the members");
            CHECK(each.culprit == rill::no_rank);
        }
}

TEST_CASE("a member that cannot be mended says so, and the others go on without it") {
    const std::vector<ending> all = train<stubborn>({0, 0, 1, 0, 0}, mends);
    for (const ending& each : all) {
        if (&each == &all[2]) continue;
        CHECK(each.error == "");
        CHECK(each.members == 3);
        CHECK(each.state == all.front().state);
    }
    CHECK(all[2].error ==
          "rill: elastic: rank 2 has got the state of the others, and has another one all the same: unpack and apply "
          "must make the same bits on all members");
    CHECK(all[2].culprit == 2);
}

TEST_CASE("a member whose `pack` has thrown once is not taken for one with another state") {
    struct failing : model {
        mutable bool throws = false;
        rill::buffer pack() const {
            if (std::exchange(throws, false)) throw std::length_error("no memory");
            return model::pack();
        }
    };
    sim::run(3, {}, [](auto& net) {
        rill::elastic team{net, rill::topology::ring{}};
        failing state;
        state.throws = net.rank() == 1;
        if (net.rank() == 1) CHECK_THROWS_AS(team.settle(state), std::length_error);
        while (team.step() < 3) {
            team.settle(state);
            const std::vector<double> mine(20, net.rank() + 1.0);
            std::vector<double> sum(20);
            REQUIRE(team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); }));
            state.add(sum);
        }
        team.finish();
        CHECK(team.view().epoch == 0);
    });
}
