// expect: rill::collective: the input is not a tensor; pass a contiguous range, rill::tensors, or a tensor of a library
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <list>
#include <vector>

#ifdef RILL_FIXED
using gradient = std::vector<float>;
#else
using gradient = std::list<float>;
#endif

void step(rill::in_process::endpoint& net, const gradient& values, std::vector<float>& update) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, values, update);
}
