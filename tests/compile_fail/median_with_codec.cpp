// expect: only all_reduce of dense tensors without a compressor takes it
// mentions: trimmed_mean
#include <rill/aggregate/trimmed_mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    rill::all_reduce(workers, values, values, rill::aggregate::trimmed_mean{});
#else
    auto codec = rill::compress::top_k{.density = 0.1}.bind(values.size());
    rill::all_reduce(workers, values, values, codec, rill::aggregate::trimmed_mean{});
#endif
}
