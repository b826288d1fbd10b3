// expect: rill::rounds: error_feedback is around a compressor that chooses the same entries on all ranks
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::star{}};
    rill::rounds steps{workers, rill::topology::star{}, rill::straggler::wait_all{}, rill::straggler::fresh{}};
#ifdef RILL_FIXED
    auto codec = rill::compress::random_mask{.density = 0.1}.bind(values.size());
#else
    auto codec = rill::compress::error_feedback{rill::compress::random_mask{.density = 0.1}}.bind(values.size());
#endif
    steps.reduce(values, values, codec);
}
