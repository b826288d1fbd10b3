// expect: the input is not a tensor;[^"]*\(rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp\)
#ifdef RILL_FIXED
#include <rill/adapt/eigen.hpp>
#endif
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <Eigen/Core>

void step(rill::in_process::endpoint& net, Eigen::VectorXf& gradient) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, gradient, gradient);
}
