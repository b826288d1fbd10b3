#include <rill/topology/chunked.hpp>

#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

using namespace rill;
using namespace rill::topology;

namespace {

template <Topology T>
void prove(const T& topology) {
    for (int size : {1, 2, 3, 4, 5, 8, 13})
        for (int chunks : {1, 2, 5}) {
            const auto schedule = [&](rank_t rank) {
                return chunked_schedule(topology.all_reduce(size, rank), chunks);
            };
            const verdict found = verify({operation::all_reduce, size, 0, promises_of(topology)}, schedule);
            CHECK_MESSAGE(found.ok, std::string(T::name), " P = ", size, ", ", chunks, ": ", std::string(found.what));
        }
}

/// Makes a promise that halving and doubling does not keep.
struct rash : butterfly_schedule {
    static constexpr bool carries_one_part = true;
};

/// Looks further ahead than a schedule allows.
template <Schedule S>
struct hasty : S {
    int ahead = 1;

    constexpr hasty() = default;
    constexpr hasty(const S& plan, int rounds) : S(plan), ahead(rounds) {}
    constexpr int lookahead() const { return ahead; }
    friend constexpr bool operator==(const hasty&, const hasty&) = default;
};

/// The defect of a ring of 4 ranks in `chunks` chunks whose schedules say that they may look `ahead`.
std::string defect_ahead(int chunks, int ahead) {
    const auto schedule = [&](rank_t rank) {
        return hasty(chunked_schedule(ring{}.all_reduce(4, rank), chunks), ahead);
    };
    return verify({operation::all_reduce, 4}, schedule).what;
}

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

TEST_CASE("chunked_schedule: the promise that rounds may overlap is checked") {
    static_assert(LookaheadSchedule<chunked_schedule<butterfly_schedule>> && !LookaheadSchedule<butterfly_schedule>);
    CHECK(defect_ahead(1, 1) == "ok");
    CHECK(defect_ahead(1, 2) == "a part may be sent before it has been received");
    CHECK(defect_ahead(3, 3) == "ok");
    CHECK(defect_ahead(3, 4) == "a part may be sent before it has been received");
    CHECK(defect_ahead(1, 0) == "lookahead() is less than 1");
    const auto notices = [](rank_t rank) { return hasty(tree{}.broadcast(4, rank, 0), 2); };
    CHECK(std::string(verify({operation::broadcast, 4}, notices).what) == "a notice may be sent too early");
}
