#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/session/survivors.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

TEST_CASE("a process with a NaN in its gradient leaves; the others repeat the step without it and continue") {
    rill::mpi::endpoint net(MPI_COMM_WORLD);
    // Two timeouts are longer than this test may take: nobody may wait for a rank that has said that it leaves.
    rill::survivors alive{net, rill::seconds(100)};
    const rill::rank_t leaver = net.size() - 1;
    int steps_done = 0;
    const auto all_steps = [&] {
        for (int step = 0; step < 20; ++step, ++steps_done) {
            std::vector<float> mine(10, 1.0F), sum(10);
            if (step == 10 && net.rank() == leaver) mine[3] = std::numeric_limits<float>::quiet_NaN();
            alive.run([&](auto& members) {
                rill::group all{members, rill::topology::tree{}, {.timeout = rill::seconds(100)}};
                auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 1}}.bind(10);
                rill::all_reduce(all, mine, sum, codec);
            });
            CHECK(sum[9] == static_cast<float>(step < 10 ? net.size() : net.size() - 1));
        }
    };
    if (net.rank() == leaver)
        CHECK_THROWS_AS(all_steps(), rill::invalid_value);
    else
        all_steps();
    CHECK(steps_done == (net.rank() == leaver ? 10 : 20));
    // An endpoint that is closed answers nobody: all stay until none has a question left.
    rill::group everyone{net, rill::topology::tree{}, {.timeout = rill::seconds(100), .name = "everyone"}};
    rill::barrier(everyone);
}
