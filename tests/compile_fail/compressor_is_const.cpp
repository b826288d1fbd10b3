// expect: rill::collective: the compressor is const, but its state changes
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    auto codec = rill::compress::top_k{.count = 10}.bind(values.size());
#else
    const auto codec = rill::compress::top_k{.count = 10}.bind(values.size());
#endif
    rill::all_reduce(workers, values, values, codec, rill::aggregate::mean{});
}
