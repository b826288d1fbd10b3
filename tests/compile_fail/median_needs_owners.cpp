// expect: the topology does not bring them together
// mentions: median[^\n]*topology::ring
#include <rill/aggregate/median.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using shape = rill::topology::split_allgather;
#else
using shape = rill::topology::ring;
#endif

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, shape{}};
    rill::all_reduce(workers, values, values, rill::aggregate::median{});
}
