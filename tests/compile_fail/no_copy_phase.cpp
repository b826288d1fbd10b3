// expect: the topology has no copy phase; use
// mentions: qsgd[^\n]*topology::recursive_doubling
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using shape = rill::topology::split_allgather;
#else
using shape = rill::topology::recursive_doubling;
#endif

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    using namespace rill::compress;
    rill::group workers{net, shape{}};
    auto codec = encoded{keep_all{}, raw{}, raw_indices{}, qsgd{}}.bind(values.size());
    rill::all_reduce(workers, values, values, codec);
}
