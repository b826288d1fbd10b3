// expect: rill::Topology: all_reduce\(size, rank\) is missing in what stands for the topology; pass
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
#ifdef RILL_FIXED
    rill::group workers{net, rill::topology::ring{}};
#else
    rill::group workers{net};
#endif
    rill::all_reduce(workers, values, values);
}
