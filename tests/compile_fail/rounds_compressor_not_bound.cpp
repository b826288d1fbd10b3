// expect: rill::collective: the compressor is not bound to this worker
#include <rill/aggregate/mean.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::split_allgather{}};
    rill::rounds steps{workers, rill::topology::star{}};
#ifdef RILL_FIXED
    auto codec = rill::compress::top_k{.count = 10}.bind(values.size());
#else
    rill::compress::top_k codec{.count = 10};
#endif
    steps.reduce(values, values, codec, rill::aggregate::mean{});
}
