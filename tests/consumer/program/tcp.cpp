// Two ranks that are connected by TCP, threads of this process.
#include "sums_up.hpp"

#include <rill/transport/tcp.hpp>

#include <thread>

int main() {
    bool right[2] = {false, false};
    const auto act = [&](int rank) {
        rill::tcp::run([&](auto& net) { right[rank] = sums_up(net); },
                       {.rank = rank, .ranks = 2, .meeting = "127.0.0.1:29417"});
    };
    std::thread other([&] { act(1); });
    act(0);
    other.join();
    return right[0] && right[1] ? 0 : 1;
}
