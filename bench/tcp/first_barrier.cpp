// The time from when a launcher was started to the end of the first barrier among all of its ranks. Rank 0 prints it.
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/transport/tcp.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s SECONDS: when the launcher was started, by the monotonic clock\n", argv[0]);
        return 2;
    }
    try {
        rill::tcp::run([&](auto& net) {
            rill::group workers{net, rill::topology::recursive_doubling{}};
            rill::barrier(workers);
            const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
            if (net.rank() == 0) std::printf("{\"seconds\": %f}\n", now.count() - std::atof(argv[1]));
        });
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
