// expect: rill::collective: the compressor stands behind the aggregator; write it before
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
    auto codec = rill::compress::top_k{.count = 10}.bind(values.size());
#ifdef RILL_FIXED
    rill::all_reduce(workers, values, values, codec, rill::aggregate::mean{});
#else
    rill::all_reduce(workers, values, values, rill::aggregate::mean{}, codec);
#endif
}
