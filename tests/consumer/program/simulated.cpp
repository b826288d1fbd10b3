// Ranks as fibers in virtual time.
#include "sums_up.hpp"

#include <rill/transport/simulated.hpp>

#include <cstdio>

int main() {
    int right = 0;
    rill::simulated::run(16, rill::simulated::network{}, [&](auto& net) { right += sums_up(net); });
    std::printf("%d of 16 ranks have the right sums\n", right);
    return right == 16 ? 0 : 1;
}
