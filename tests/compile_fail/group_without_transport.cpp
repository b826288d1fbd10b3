// expect: rill::group: the first argument does not model rill::Transport; pass
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using transport = rill::in_process::endpoint;
#else
struct transport {
    int rank() const;
    int size() const;
};
#endif

void step(transport& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, values, values);
}
