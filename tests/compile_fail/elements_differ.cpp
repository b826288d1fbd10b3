// expect: rill::collective: input and output have different elements; convert one of them
#include <rill/collective/reduce_scatter.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using element = float;
#else
using element = double;
#endif

void step(rill::in_process::endpoint& net, const std::vector<element>& values, std::vector<float>& part) {
    rill::group workers{net, rill::topology::ring{}};
    rill::reduce_scatter(workers, values, part);
}
