// expect: rill::partial_all_reduce: the last argument is no compressor for the model's elements
// mentions: not what its bind returns
#include <rill/aggregate/add.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

using workers_type = rill::group<rill::in_process::endpoint, rill::topology::ring>;

void work(workers_type& workers, const std::vector<float>& model) {
#ifdef RILL_FIXED
    rill::partial_all_reduce replica{workers,
                                     rill::straggler::solo{},
                                     rill::straggler::unbounded{},
                                     rill::straggler::plain_sum{},
                                     rill::aggregate::add{},
                                     model,
                                     rill::compress::top_k{.density = 0.5}};
#else
    const auto codec = rill::compress::top_k{.density = 0.5}.bind(model.size());
    rill::partial_all_reduce replica{workers,
                                     rill::straggler::solo{},
                                     rill::straggler::unbounded{},
                                     rill::straggler::plain_sum{},
                                     rill::aggregate::add{},
                                     model,
                                     codec};
#endif
}
