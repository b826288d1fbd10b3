// expect: rill::train::decentralized: mix_beside needs activities beside the caller
#include <rill/compress/keep_all.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

struct transport : rill::in_process::endpoint {
    void spawn() = delete;
};

void work(transport& net) {
    using namespace rill;
#ifdef RILL_FIXED
    const train::mix_before order{};
#else
    const train::mix_beside order{};
#endif
    const train::decentralized plan{topology::ring_neighbours{}, train::sgd{}, train::constant_rate{0.1},
                                    compress::keep_all{}, order};
    plan.bind(net, {});
}
