// One of two translation units that include single_include/; this one includes every file twice.
// clang-format off
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/testing.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/rill.hpp>
// clang-format on

int ranks_of_two();

int main() {
    int ranks = 0;
    rill::in_process::run(1, [&](auto& net) { ranks = net.size(); });
    return ranks + ranks_of_two() == 3 ? 0 : 1;
}
