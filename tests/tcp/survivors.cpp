#include <rill/session/survivors.hpp>

#include "processes.hpp"

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/ring.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <vector>

using namespace rill;

TEST_CASE("survivors: when processes are killed in a step, the others repeat it without them, and go on") {
    const std::vector<std::vector<rank_t>> victims{{0}, {2}, {1, 3}};
    for (const auto& killed : victims) {
        CAPTURE(killed.front());
        const auto is_killed = [&](rank_t rank) { return std::ranges::count(killed, rank) != 0; };
        const auto act = [&](const tcp::options& chosen) {
            bool is_right = true;
            tcp::run(
                [&](auto& net) {
                    rill::survivors alive{net, seconds(10)};
                    for (int step = 0; step < 5; ++step) {
                        std::vector<float> mean(1000);
                        const std::vector<float> own(1000, static_cast<float>(net.rank()));
                        alive.run([&](auto& members) {
                            group all{members, topology::ring{}, {.timeout = seconds(10)}};
                            all_reduce(all, own, mean, aggregate::mean{});
                            if (step == 2 && is_killed(net.rank())) ::raise(SIGKILL);
                            all_reduce(all, own, mean, aggregate::mean{});
                        });
                        float expected = 0;
                        for (const rank_t member : alive.view().members) expected += static_cast<float>(member);
                        expected /= static_cast<float>(alive.view().members.size());
                        is_right &= alive.view().members.size() == 4 - (step < 2 ? 0 : killed.size());
                        is_right &= std::abs(mean.front() - expected) < 1e-6F && mean.back() == mean.front();
                    }
                },
                chosen);
            return is_right ? 0 : 2;
        };
        const std::vector<pid_t> started = processes::start(4, act);
        for (std::size_t rank = 0; rank < started.size(); ++rank) {
            CAPTURE(rank);
            CHECK(processes::end_of(started[rank]) == (is_killed(static_cast<rank_t>(rank)) ? 128 + SIGKILL : 0));
        }
    }
}
