// expect: rill::collective: input and output number their coordinates in different orders \(row-major, column-major\)
#include <rill/adapt/eigen.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#ifdef RILL_FIXED
constexpr int order = Eigen::ColMajor;
#else
constexpr int order = Eigen::RowMajor;
#endif

void step(rill::in_process::endpoint& net, const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, order>& gradient,
          Eigen::MatrixXf& update) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, gradient, update);
}
