// expect: rill::collective: the output is a temporary that owns its values, so the result would be lost
#include <rill/adapt/eigen.hpp>

#include <rill/collective/broadcast.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

void step(rill::in_process::endpoint& net, Eigen::VectorXf& parameters) {
    rill::group workers{net, rill::topology::ring{}};
#ifdef RILL_FIXED
    rill::broadcast(workers, parameters.head(10), 0);
#else
    rill::broadcast(workers, Eigen::VectorXf(parameters.head(10)), 0);
#endif
}
