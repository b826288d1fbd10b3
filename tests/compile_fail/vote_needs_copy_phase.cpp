// expect: the aggregator finishes parts at their owners and the topology has no copy phase
// mentions: sign_of_sum[^\n]*topology::recursive_doubling
#include <rill/aggregate/sign_of_sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using shape = rill::topology::split_allgather;
#else
using shape = rill::topology::recursive_doubling;
#endif

void step(rill::in_process::endpoint& net, std::vector<float>& votes) {
    rill::group workers{net, shape{}};
    rill::all_reduce(workers, votes, votes, rill::aggregate::sign_of_sum{});
}
