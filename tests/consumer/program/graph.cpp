// Boost.Graph matches as many ranks as can be matched.
#include <rill/adapt/boost_matching.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/verify_mixing.hpp>

#include <cstdio>
#include <vector>

int main() {
    const rill::topology::bandwidth_matching mixing{.links = std::vector<double>(8 * 8, 1e6),
                                                    .matcher = rill::adapt::boost_matching{}};
    const auto found = rill::topology::verify_mixing(mixing, 8, {.count = 20, .window = 3});
    std::printf("8 ranks in pairs: %s\n", found.what);
    return found.ok ? 0 : 1;
}
