// expect: rill::collective: a compressor stands where the aggregator is expected; only all_reduce
#include <rill/aggregate/mean.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    rill::reduce(workers, values, values, 0, rill::aggregate::mean{});
#else
    rill::reduce(workers, values, values, 0, rill::compress::top_k{.count = 10});
#endif
}
