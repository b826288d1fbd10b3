// A matrix and an expression of Eigen.
#include <rill/adapt/eigen.hpp>
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <Eigen/Core>

#include <atomic>
#include <cstdio>

int main() {
    std::atomic<int> right = 0;
    rill::in_process::run(4, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        const Eigen::MatrixXf one = Eigen::MatrixXf::Constant(3, 5, 1);
        Eigen::MatrixXf sum(3, 5);
        rill::all_reduce(workers, static_cast<float>(net.rank()) * one, sum);
        right += sum == 6.0F * one;
    });
    std::printf("%d of 4 ranks have the right sums\n", right.load());
    return right == 4 ? 0 : 1;
}
