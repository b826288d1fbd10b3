// expect: rill::collective: the group is const
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    auto& group = workers;
#else
    const auto& group = workers;
#endif
    rill::all_reduce(group, values, values);
}
