// expect: rill::collective: the argument behind the aggregator is not a rill::contribution; write its weight as
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    rill::all_reduce(workers, values, values, rill::aggregate::mean{}, {.weight = 2});
#else
    rill::all_reduce(workers, values, values, rill::aggregate::mean{}, 2);
#endif
}
