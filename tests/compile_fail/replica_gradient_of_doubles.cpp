// expect: rill::Replica: the model or gradient has other elements than the model that the replica was
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
                                     model};
    replica.push(std::vector<float>(model.size()), {});
#else
    rill::partial_all_reduce replica{workers,
                                     rill::straggler::solo{},
                                     rill::straggler::unbounded{},
                                     rill::straggler::plain_sum{},
                                     rill::aggregate::add{},
                                     model};
    replica.push(std::vector<double>(model.size()), {});
#endif
}
