// expect: rill::all_reduce: the compressor does not send coordinates of its input, so no stream can hold the result
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, const std::vector<float>& values, rill::stream<float>& result) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    auto codec = rill::compress::top_k{.density = 0.1}.bind(values.size());
#else
    auto codec = rill::compress::random_mask{.density = 0.1}.bind(values.size());
#endif
    rill::all_reduce(workers, values, result, codec);
}
