// expect: rill::partial_all_reduce: the first argument is not a group
// mentions: rill::group workers
#include <rill/aggregate/add.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

using workers_type = rill::group<rill::in_process::endpoint, rill::topology::ring>;

void work(workers_type& workers, rill::in_process::endpoint& net, const std::vector<float>& model) {
#ifdef RILL_FIXED
    (void)net;
    rill::partial_all_reduce replica{workers,
                                     rill::straggler::solo{},
                                     rill::straggler::unbounded{},
                                     rill::straggler::plain_sum{},
                                     rill::aggregate::add{},
                                     model};
#else
    (void)workers;
    rill::partial_all_reduce replica{net,
                                     rill::straggler::solo{},
                                     rill::straggler::unbounded{},
                                     rill::straggler::plain_sum{},
                                     rill::aggregate::add{},
                                     model};
#endif
}
