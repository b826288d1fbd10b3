// expect: rill::collective: a function stands where the aggregator is expected; use aggregate::sum
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    rill::all_reduce(workers, values, values, rill::aggregate::mean{});
#else
    rill::all_reduce(workers, values, values, [](float x, float y) { return x + y; });
#endif
}
