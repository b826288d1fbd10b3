#include <rill/aggregate/add.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/contract.hpp>
#include <rill/protocol/local_steps.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace rill::straggler;
using rill::mpi::endpoint;
using rill::topology::ring;

constexpr std::size_t coordinates = 1001;
constexpr std::uint64_t steps = 20;

std::vector<float> gradient_at(const std::vector<float>& model, int rank, std::uint64_t step) {
    std::vector<float> to(model.size());
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = 0.5F * model[i] + static_cast<float>((i + 7 * step + 3 * static_cast<std::uint64_t>(rank)) % 11) / 11;
    return to;
}

/// With all ranks in each round the bits are those of a loop of `all_reduce`.
template <class Shape>
void check_lockstep(endpoint& net, Shape shape) {
    CAPTURE(Shape::name);
    rill::group workers{net, shape};
    std::vector<float> model(coordinates, 1), expected = model, update = model;
    auto optimizer = rill::train::sgd{.momentum = 0.5}.bind<float>(coordinates);
    for (std::uint64_t step = 0; step < steps; ++step) {
        rill::all_reduce(workers, gradient_at(expected, net.rank(), step), update, rill::aggregate::mean{});
        optimizer.step(expected, update, 0.01 * net.size());
    }
    const rill::train::descent rule{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.01}};
    rill::partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, rule, model};
    while (const auto held = replica.pull(model))
        if (held->version < steps)
            replica.push(gradient_at(model, net.rank(), held->version), *held);
        else
            replica.retire();
    CHECK(model == expected);
}

/// Pushes `steps` ones, and returns how many of them counted.
template <class Replica>
double push_ones(Replica& replica, std::vector<double>& model) {
    const std::vector<double> ones(model.size(), 1);
    std::uint64_t pushed = 0;
    double counted = 0;
    while (const auto held = replica.pull(model))
        if (++pushed <= steps)
            replica.push(ones, *held);
        else
            replica.retire();
    while (const auto fate = replica.fate()) counted += fate->weight;
    return counted;
}

double sum_of(endpoint& net, double own) {
    rill::group workers{net, ring{}};
    std::vector<double> sum{own};
    rill::all_reduce(workers, sum, sum);
    return sum[0];
}

/// Runs `check`, or sees that it is refused where activities cannot run alone.
template <class Check>
void where_activities_run_alone(Check&& check) {
    endpoint net{MPI_COMM_WORLD};
    if (net.activities_run_alone())
        check(net);
    else
        CHECK_THROWS_AS(check(net), rill::contract_violation);
}

template <class Pairing>
void check_pairs(endpoint& net, const Pairing& pairing) {
    std::vector<double> model(coordinates);
    rill::pair_averaging replica{net, pairing, rill::aggregate::add{}, model};
    const double counted = push_ones(replica, model);
    CHECK(counted == steps);
    CHECK(sum_of(net, model[5]) == doctest::Approx(counted * net.size()));
}

}  // namespace

TEST_CASE("partial_all_reduce: all_ready gives the bits of lockstep") {
    where_activities_run_alone([](endpoint& net) {
        check_lockstep(net, ring{});
        check_lockstep(net, rill::topology::recursive_doubling{});
        check_lockstep(net, rill::topology::halving_doubling{});
        check_lockstep(net, rill::topology::split_allgather{});
        check_lockstep(net, rill::topology::tree{});
        check_lockstep(net, rill::topology::star{});
    });
}

TEST_CASE("partial_all_reduce: what counts is what the model holds") {
    where_activities_run_alone([](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(coordinates);
        const two_choices asked{net.size() > 1 ? 2 : 1};
        rill::partial_all_reduce replica{workers, asked, bounded{4}, plain_sum{}, rill::aggregate::add{}, model};
        const double counted = push_ones(replica, model);
        CHECK(model == std::vector<double>(coordinates, sum_of(net, counted)));
    });
}

TEST_CASE("local_steps: models are averaged") {
    where_activities_run_alone([](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(coordinates);
        const rill::train::descent average{rill::train::sgd{}, rill::train::constant_rate{1}, false};
        rill::partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, average, model};
        rill::local_steps replica{rounds, {.every = 4}, rill::aggregate::add{}, model};
        CHECK(push_ones(replica, model) == steps);
        CHECK(model == std::vector<double>(coordinates, steps));
    });
}

TEST_CASE("pair_averaging: models keep what was pushed") {
    where_activities_run_alone([](endpoint& net) {
        check_pairs(net, rill::topology::bipartite{});
        check_pairs(net, rill::topology::anyone{});
    });
}
