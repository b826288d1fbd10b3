// Saving and restoring a partial all-reduce: all ranks have one model, and the same state of the rule that moves it.
#include "../support/scratch.hpp"

#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using rill::simulated::endpoint;
using rill::train::checkpoint;

namespace {

auto made_of(rill::group<endpoint, rill::topology::ring>& workers) {
    return rill::partial_all_reduce{
        workers,
        rill::straggler::all_ready{},
        rill::straggler::in_step{},
        rill::straggler::plain_sum{},
        rill::train::descent{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{1}},
        std::vector<double>(1)};
}

/// Makes a round for each gradient, of which rank 0 pushes this one and rank 1 nothing but 0, and saves each rank's
/// file.
void save_run(const scratch_directory& to, const std::vector<double>& gradients) {
    rill::simulated::run(2, {}, [&](endpoint& net) {
        rill::group workers{net, rill::topology::ring{}};
        auto replica = made_of(workers);
        std::vector<double> model(1), gradient(1);
        for (const double each : gradients) {
            const auto held = replica.pull(model);
            REQUIRE(held);
            gradient[0] = net.rank() == 0 ? each : 0;
            replica.push(gradient, *held);
        }
        replica.retire();
        while (replica.pull(model)) continue;
        CHECK(model[0] == -3);
        checkpoint::writer out;
        replica.save(out, "");
        out.save(to / std::to_string(net.rank()).c_str());
    });
}

/// How many ranks refuse the file of the folder `from(rank)`.
template <class From>
int refusals(From&& from) {
    int refused = 0;
    rill::simulated::run(2, {}, [&](endpoint& net) {
        rill::group workers{net, rill::topology::ring{}};
        auto replica = made_of(workers);
        const checkpoint in = checkpoint::load(from(net.rank()) / std::to_string(net.rank()).c_str());
        try {
            replica.restore(in, "");
        } catch (const rill::mismatch&) {
            ++refused;
        }
    });
    return refused;
}

}  // namespace

TEST_CASE("partial_all_reduce: files of runs that have one model, but moved it with another momentum, are a mismatch") {
    const scratch_directory one, other;
    save_run(one, {2, 0});
    save_run(other, {0, 3});
    CHECK(refusals([&](rill::rank_t) -> const scratch_directory& { return one; }) == 0);
    CHECK(refusals([&](rill::rank_t) -> const scratch_directory& { return other; }) == 0);
    CHECK(refusals([&](rill::rank_t rank) -> const scratch_directory& { return rank == 0 ? one : other; }) == 2);
}
