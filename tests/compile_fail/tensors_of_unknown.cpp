// expect: rill::tensors: an argument is not a tensor; include the adapter of its library
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <list>
#include <vector>

#ifdef RILL_FIXED
using layer = std::vector<float>;
#else
using layer = std::list<float>;
#endif

void step(rill::in_process::endpoint& net, layer& weights, std::vector<float>& bias) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, rill::tensors{weights, bias}, rill::tensors{weights, bias});
}
