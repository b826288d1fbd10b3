// expect: rill::rounds: the compressor chooses other entries in each round
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::star{}};
#ifdef RILL_FIXED
    rill::rounds steps{workers, rill::topology::star{}, rill::straggler::wait_all{}, rill::straggler::fresh{}};
#else
    rill::rounds steps{workers, rill::topology::star{}, rill::straggler::wait_all{}, rill::straggler::bounded{1}};
#endif
    auto codec = rill::compress::random_mask{.density = 0.1}.bind(values.size());
    steps.reduce(values, values, codec);
}
