#include <rill/topology/chunked.hpp>

#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

using namespace rill;
using namespace rill::topology;

namespace {

bool overlap(part_range a, part_range b) { return a.first < b.last && b.first < a.last; }

/// Whether a message sent in `round` depends on a receive of a round that may still be under way.
template <Schedule S>
bool sends_too_early(const chunked_schedule<S>& plan, int round) {
    for (int i = 0; i < plan.sends(round); ++i)
        for (int under_way = std::max(0, round - plan.lookahead() + 1); under_way < round; ++under_way)
            for (int j = 0; j < plan.receives(under_way); ++j)
                if (overlap(plan.send(round, i).parts, plan.receive(under_way, j).parts)) return true;
    return false;
}

template <Topology T>
void prove(const T& topology) {
    for (int size : {1, 2, 3, 4, 5, 8, 13})
        for (int chunks : {1, 2, 5}) {
            const auto schedule = [&](rank_t rank) {
                return chunked_schedule(topology.all_reduce(size, rank), chunks);
            };
            const verdict found = verify({operation::all_reduce, size, 0, promises_of(topology)}, schedule);
            CHECK_MESSAGE(found.ok, std::string(T::name), " P = ", size, ", ", chunks, ": ", std::string(found.what));
            for (rank_t rank = 0; rank < size; ++rank)
                for (int round = 0; round < schedule(rank).rounds(); ++round)
                    CHECK_FALSE(sends_too_early(schedule(rank), round));
        }
}

/// Makes a promise that halving and doubling does not keep.
struct rash : butterfly_schedule {
    static constexpr bool carries_one_part = true;
};

}  // namespace

TEST_CASE("chunked_schedule: is correct in chunks, and sends depend only on finished rounds") {
    prove(ring{});
    prove(split_allgather{});
    prove(recursive_doubling{});
    prove(tree{});
}

TEST_CASE("chunked_schedule: one chunk is the schedule itself") {
    const auto whole = halving_doubling{}.all_reduce(5, 3);
    const chunked_schedule plan(whole, 1);
    CHECK(plan.parts() == whole.parts());
    for (int round = 0; round < whole.rounds(); ++round)
        for (int i = 0; i < whole.sends(round); ++i) CHECK(plan.send(round, i) == whole.send(round, i));
}

TEST_CASE("chunked_schedule: parts that travel together cannot be cut") {
    CHECK_FALSE(can_be_cut(halving_doubling{}.all_reduce(4, 0)));
    CHECK_FALSE(can_be_cut(recursive_doubling{}.all_gather(4, 0)));
    CHECK_THROWS_AS(chunked_schedule(halving_doubling{}.all_reduce(4, 0), 2), contract_violation);
    CHECK(can_be_cut(ring{}.all_reduce(4, 0)));
    CHECK(can_be_cut(recursive_doubling{}.all_reduce(4, 0)));
}

TEST_CASE("chunked_schedule: the promise that parts travel alone is checked") {
    const auto schedule = [](rank_t rank) { return rash{halving_doubling{}.all_reduce(4, rank)}; };
    CHECK(std::string(verify({operation::all_reduce, 4, 0, {}}, schedule).what) ==
          "a transfer carries several parts, against its promise");
}
