// expect: rill::all_reduce: output and compressor have different index types
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include <cstdint>
#include <vector>

void step(rill::in_process::endpoint& net, const std::vector<float>& values, rill::stream<float>& result) {
    rill::group workers{net, rill::topology::split_allgather{}};
#ifdef RILL_FIXED
    auto codec = rill::compress::top_k{.density = 0.1}.bind(values.size());
#else
    auto codec = rill::compress::top_k{.density = 0.1}.bind<float, std::uint64_t>(values.size());
#endif
    rill::all_reduce(workers, values, result, codec);
}
