// Reduces the gradients of a layer, an Eigen matrix and an Eigen vector, in one operation. Contiguous tensors are not
// copied first. A compressor sees several tensors as one vector, one behind the other.
#include <rill/adapt/eigen.hpp>
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <cstdio>

int main() {
    rill::in_process::run(4, [](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        const auto rank = static_cast<float>(net.rank());

        Eigen::MatrixXf weights = Eigen::MatrixXf::Constant(3, 2, rank);
        Eigen::VectorXf bias = Eigen::VectorXf::Constant(3, 10 * rank);
        const rill::receipt done = rill::all_reduce(workers, rill::tensors{weights, bias}, rill::tensors{weights, bias},
                                                    rill::aggregate::mean{});

        // An input expression is evaluated first; an output block is written with its stride.
        Eigen::MatrixXf table = Eigen::MatrixXf::Zero(4, 4);
        rill::all_reduce(workers, rank * Eigen::Vector4f::Ones(), table.row(1), rill::aggregate::max{});

        if (net.rank() != 0) return;
        std::printf("weights %g, bias %g, in %d rounds\n", static_cast<double>(weights(2, 1)),
                    static_cast<double>(bias(2)), done.rounds);
        std::printf("table, row 1: %g, sum of all: %g\n", static_cast<double>(table(1, 3)),
                    static_cast<double>(table.sum()));
    });
}
