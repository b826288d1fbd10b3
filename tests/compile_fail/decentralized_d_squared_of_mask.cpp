// expect: rill::train::decentralized: the order needs whole models mixed, and the codec sends a part
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

void work(rill::in_process::endpoint& net) {
    using namespace rill;
#ifdef RILL_FIXED
    const compress::keep_all codec{};
#else
    const compress::random_mask codec{.density = 0.01};
#endif
    const train::decentralized plan{topology::ring_neighbours{.own = 0.5}, train::sgd{}, train::constant_rate{0.1},
                                    codec, train::d_squared{}};
    plan.bind(net, {});
}
