// expect: rill::partial_all_reduce: takes a group, a trigger, a staleness, a backlog, an update and the first
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
#else
    rill::partial_all_reduce replica{workers, rill::straggler::solo{}, rill::straggler::unbounded{},
                                     rill::straggler::plain_sum{}, model};
#endif
}
