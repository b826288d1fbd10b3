// expect: rill::collective: the output cannot be written to, because it is const or an expression; pass a vector
#include <rill/adapt/eigen.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

void step(rill::in_process::endpoint& net, const Eigen::VectorXf& gradient, Eigen::VectorXf& update) {
    rill::group workers{net, rill::topology::ring{}};
#ifdef RILL_FIXED
    rill::all_reduce(workers, 2 * gradient, update.head(10));
#else
    rill::all_reduce(workers, gradient, 2 * update);
#endif
}
