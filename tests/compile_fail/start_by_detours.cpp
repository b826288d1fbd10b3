// expect: rill::start: with this topology .backup_tree. a rank on the way of others must be in the same
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using shape = rill::topology::tree;
#else
using shape = rill::topology::backup_tree;
#endif

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, shape{}};
    auto request = rill::start_all_reduce(workers, values, values);
    request.get();
}
