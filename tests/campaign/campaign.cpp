// Every collective on every topology under every kind of fault: the result is exact, or an error names the fault; no
// run hangs.
#include <rill/testing/coverage.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include "bodies.hpp"
#include "campaign_size.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

using namespace protocols;
namespace testing = rill::testing;

namespace {

const std::vector<std::string> topology_names{
    "ring", "recursive_doubling", "halving_doubling", "split_allgather", "tree", "tree of 3", "star", "backup_tree"};

using body = void (*)(rill::simulated::endpoint&, const testing::protocol_case&, const testing::protocol_limits&,
                      testing::rank_record&, call, common&);
template <class Shape, int... Arity>
void on(rill::simulated::endpoint& net, const testing::protocol_case& of, const testing::protocol_limits& limits,
        testing::rank_record& mine, call which, common& all) {
    play_member(net, of, limits, mine, which, Shape{Arity...}, all);
}
constexpr body bodies[] = {&on<rill::topology::ring>,
                           &on<rill::topology::recursive_doubling>,
                           &on<rill::topology::halving_doubling>,
                           &on<rill::topology::split_allgather>,
                           &on<rill::topology::tree>,
                           &on<rill::topology::tree, 3>,
                           &on<rill::topology::star>,
                           &on<rill::topology::backup_tree>};

/// The protocol of one rank. What the ranks of a run share lives until the next run.
auto protocol_of(call which, std::size_t topology, const testing::protocol_limits& limits, common& all) {
    return [=, &limits, &all](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.rank() == 0 && net.restarts() == 0) all = {};
        bodies[topology](net, of, limits, mine, which, all);
    };
}

/// All runs of one call on one topology.
std::string explore(call which, std::size_t topology, testing::coverage& seen) {
    const auto call_number = static_cast<std::size_t>(which);
    common all;
    std::string wrong;
    testing::protocol_test test(std::string(call_names[call_number]) + " on " + topology_names[topology]);
    for (int ranks = least_ranks; ranks <= most_ranks; ++ranks) {
        const testing::protocol_limits limits{.least_ranks = ranks, .most_ranks = ranks};
        const auto p = static_cast<std::size_t>(ranks - least_ranks);
        for (std::size_t kind = 0; kind < std::size(testing::every_fault_kind); ++kind)
            for (std::uint64_t i = 0; i < runs_of_each_cell; ++i) {
                const std::uint64_t seed = first_seed + rill::mix64(call_number, topology, p, kind, i) % 1'000'000'000;
                if (seed % one_in != 0) continue;
                const testing::protocol_case drawn = testing::draw_case(testing::every_fault_kind[kind], seed, limits);
                const std::string report = test.run(drawn, protocol_of(which, topology, test.limits(), all));
                seen.count({call_number, topology, kind, p}, test.last().any_call_failed());
                if (!report.empty() && wrong.size() < 20'000) wrong += report;
            }
    }
    return wrong;
}

}  // namespace

TEST_CASE("every collective on every topology gives an exact result or an error that names the fault") {
    testing::coverage seen({{"call", {std::begin(call_names), std::end(call_names)}},
                            {"topology", topology_names},
                            {"fault", fault_names()},
                            {"ranks", rank_names()}});
    for (std::size_t which = 0; which < std::size(call_names); ++which)
        for (std::size_t topology = 0; topology < std::size(bodies); ++topology)
            CHECK(explore(static_cast<call>(which), topology, seen) == "");
    if (testing::protocol_test::is_replay()) return;
    MESSAGE(seen.runs() << " runs, of them with a failed call:\n"
                        << seen.table(0, 2) << "\n"
                        << seen.table(1, 2) << "\n"
                        << seen.table(3, 2));
    if (one_in == 1) CHECK(seen.never_run() == "");
}

TEST_CASE("failures that the campaign has found stay fixed") {
    struct found {
        call which;
        std::size_t topology;
        const char* what;
    };
    // These cases found a bug of the ring: it confused messages that are empty or all cover the same range.
    const found all_found[] = {
        {call::all_gather_stream, 0, "run 609464616 ranks 8 size 4 plain: seed 680; duplicate 0.03125"},
        {call::all_gather_stream, 0, "run 194609661 ranks 9 size 0 plain: seed 12; lose 0.25 on 0>1"},
        {call::all_reduce_dense, 0, "run 274958336 ranks 12 size 0: seed 143; duplicate 0.125"},
        {call::reduce_scatter_dense, 0, "run 539930215 ranks 7 size 0 plain: seed 262; lose 0.03125"},
        {call::all_reduce_codec, 0,
         "run 166685517 ranks 3 size 0 plain: seed 0; cut on 2>0 after 1; heal on 2>0 after 2"},
    };
    common all;
    for (const found& each : all_found) {
        testing::protocol_test test("found");
        CHECK(test.run(testing::parse_protocol_case(each.what),
                       protocol_of(each.which, each.topology, test.limits(), all)) == "");
    }
}
