// usage: tools/launch -n RANKS bench_tcp_idle SECONDS
// The ranks meet and pass a barrier. Then each does nothing for SECONDS, and then all wait as long for rank 0. Rank 0
// prints the time at which the barrier ended (seconds since 1970), and which part of a core a rank has used while it
// did nothing (`idle`) and while it waited (`waiting`): the most of all ranks.
#include <rill/aggregate/max.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/time.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/transport/tcp.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "two_processes.hpp"

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: tools/launch -n RANKS %s SECONDS\n", argv[0]), 2;
    const std::chrono::duration<double> time(std::atof(argv[1]));
    try {
        rill::tcp::run([&](rill::tcp::endpoint& net) {
            rill::group all{net, rill::topology::recursive_doubling{}};
            rill::barrier(all);
            const std::chrono::duration<double> met = std::chrono::system_clock::now().time_since_epoch();
            const auto part_of_core = [&](auto&& pass_time) {
                const double before = two_processes::cpu_seconds();
                pass_time();
                return static_cast<float>((two_processes::cpu_seconds() - before) / time.count());
            };
            const float idle = part_of_core([&] { std::this_thread::sleep_for(time); });
            const float waiting = part_of_core([&] {
                if (net.rank() == 0) std::this_thread::sleep_for(time);
                rill::barrier(all);
            });
            const std::vector<float> own{idle, waiting};
            std::vector<float> most(own.size());
            rill::all_reduce(all, own, most, rill::aggregate::max{});
            if (net.rank() == 0)
                std::printf("{\"met\": %.6f, \"idle\": %.6f, \"waiting\": %.6f}\n", met.count(), double{most[0]},
                            double{most[1]});
        });
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
