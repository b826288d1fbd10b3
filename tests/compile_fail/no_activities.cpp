// expect: rill::start: the transport does not model ConcurrentTransport, so no operation can go on without its
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using transport = rill::in_process::endpoint;
#else
struct transport : rill::in_process::endpoint {
    void spawn() = delete;
};
#endif

void step(transport& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::ring{}};
    auto request = rill::start_all_reduce(workers, values, values);
    request.get();
}
