// expect: rill::collective: this element type cannot travel; use float
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using element = float;
#else
using element = long double;
#endif

void step(rill::in_process::endpoint& net, std::vector<element>& values) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, values, values);
}
