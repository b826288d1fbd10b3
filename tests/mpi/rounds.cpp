#include <rill/collective/group.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace rill::straggler;
using rill::topology::tree;

/// A rank's contribution in a round: a power of two tells the ranks apart in any sum, the bits above tell the round.
std::int64_t part_of(rill::rank_t rank, std::int64_t round) { return (std::int64_t{1} << rank) + (round << 20); }

/// Rounds in which the last rank sleeps. The results hold exactly the contributions whose ranks are told so.
template <class... Policies>
void check_rounds(rill::mpi::endpoint& net, std::size_t dimension, const tree& shape, const Policies&... policies) {
    rill::group workers{net, rill::topology::star{}, {.timeout = rill::seconds(60)}};
    std::int64_t told[] = {0}, all_told[1], in_results = 0;
    {
        rill::rounds steps{workers, shape, policies...};
        std::vector<std::int64_t> model(7, 1), own(dimension), update(dimension);
        bool has_sent = false;
        const auto listen = [&] { told[0] += has_sent && steps.was_in() ? 1 : 0; };
        while (steps.next(model)) {
            listen();
            const auto number = static_cast<std::int64_t>(steps.number());
            CHECK(model == std::vector<std::int64_t>(7, number));
            if (net.rank() == net.size() - 1) net.sleep_until(net.now() + rill::milliseconds(5));
            own.assign(dimension, part_of(net.rank(), number));
            const auto r = steps.reduce(own, update);
            has_sent = true;
            if (!steps.is_root()) continue;
            std::int64_t expected = 0;
            for (const rill::contributor& each : r.in) expected += part_of(each.rank, number - each.age);
            CHECK(update == std::vector<std::int64_t>(dimension, expected));
            in_results += r.contributors;
            model.assign(7, number + 1);
            if (number == 25) steps.end();
        }
        listen();
    }
    rill::reduce(workers, told, all_told, 0);
    if (net.rank() == 0) CHECK(all_told[0] == in_results);
}

}  // namespace

TEST_CASE("collectives: rounds do without a sleeper, with small and large messages") {
    for (const std::size_t dimension : {10U, 60'000U})
        processes::run(4, [&](auto& net) {
            check_rounds(net, dimension, tree{3}, tolerate{1});
            check_rounds(net, dimension, tree{2}, fastest{1});
            check_rounds(net, dimension, tree{3}, until{.after = rill::milliseconds(1)}, bounded{2});
            check_rounds(net, dimension, tree{1}, wait_all{});
        });
}
