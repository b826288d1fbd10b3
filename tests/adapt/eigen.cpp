#include <rill/adapt/eigen.hpp>

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/collective/tensors.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>

#include "../support/allocations.hpp"
#include "../support/watched.hpp"

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

using Eigen::MatrixXf;
using Eigen::VectorXf;
using rill::OutputTensor;
using rill::Tensor;
using rill::tensors;

namespace {

using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using block = decltype(std::declval<MatrixXf&>().block(0, 0, 1, 1));
using order = rill::coordinate_order;

static_assert(OutputTensor<VectorXf> && OutputTensor<MatrixXf&> && OutputTensor<Eigen::Array3d&> &&
              OutputTensor<block>);
static_assert(OutputTensor<Eigen::Map<MatrixXf>> && OutputTensor<Eigen::Ref<MatrixXf>>);
static_assert(Tensor<const MatrixXf&> && !OutputTensor<const MatrixXf&> && !OutputTensor<const block>);
static_assert(Tensor<Eigen::Map<const VectorXf>> && !OutputTensor<Eigen::Map<const VectorXf>>);
static_assert(Tensor<Eigen::Ref<const VectorXf>> && !OutputTensor<Eigen::Ref<const VectorXf>>);
using sum_of_two = decltype(std::declval<VectorXf&>() + std::declval<VectorXf&>());
static_assert(Tensor<sum_of_two> && !OutputTensor<sum_of_two>);
static_assert(OutputTensor<decltype(std::declval<MatrixXf&>().diagonal())>, "written through its stride");
static_assert(OutputTensor<decltype(std::declval<VectorXf&>().reverse())>, "written element by element");
static_assert(OutputTensor<std::vector<MatrixXf>> && OutputTensor<tensors<MatrixXf&, block>>);
static_assert(!Tensor<Eigen::SparseMatrixBase<MatrixXf>> && !Tensor<Eigen::DiagonalMatrix<float, 3>>);
static_assert(rill::detail::order_of<MatrixXf> == order::column_major);
static_assert(rill::detail::order_of<row_major> == order::row_major);
static_assert(rill::detail::order_of<decltype(std::declval<MatrixXf&>().transpose())> == order::row_major);
static_assert(rill::detail::order_of<Eigen::RowVectorXf> == order::any);

MatrixXf values(int rank, Eigen::Index rows, Eigen::Index columns) {
    return MatrixXf::NullaryExpr(
        rows, columns, [=](Eigen::Index i, Eigen::Index j) { return static_cast<float>((rank + 1) * (10 * i + j)); });
}

/// The sum over three ranks of the matrices that `values` makes for them.
MatrixXf sum_of_values(Eigen::Index rows, Eigen::Index columns) { return 6 * values(0, rows, columns); }

/// Runs `body(group)` on three ranks; returns whether it returned true on all of them.
template <class Body>
bool on_three(Body body) {
    std::array<bool, 3> good{};
    rill::in_process::run(3, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        good[static_cast<std::size_t>(net.rank())] = body(workers);
    });
    return good[0] && good[1] && good[2];
}

}  // namespace

TEST_CASE("eigen: matrices, blocks, maps and expressions are inputs and outputs") {
    CHECK(on_three([](auto& workers) {
        const MatrixXf in = values(workers.rank(), 6, 4), sum = sum_of_values(6, 4);
        bool good = true;
        MatrixXf out = MatrixXf::Zero(6, 4);
        rill::all_reduce(workers, in, out);
        good = good && out == sum;
        rill::all_reduce(workers, 2 * in - in.cwiseAbs(), out);
        good = good && out == sum;

        MatrixXf wide = MatrixXf::Constant(8, 6, -1);  // strided input and output; the output is an rvalue
        rill::all_reduce(workers, in.topRows(5), wide.block(2, 1, 5, 4));
        good = good && wide.block(2, 1, 5, 4) == sum.topRows(5);
        wide.block(2, 1, 5, 4).setConstant(-1);
        good = good && wide == MatrixXf::Constant(8, 6, -1);

        std::vector<float> raw(24);
        rill::all_reduce(workers, in.middleCols(1, 2), Eigen::Map<MatrixXf>(raw.data() + 12, 6, 2));
        good = good && Eigen::Map<MatrixXf>(raw.data() + 12, 6, 2) == sum.middleCols(1, 2);

        VectorXf vector(4);
        rill::all_reduce(workers, in.row(3), vector);
        good = good && vector == sum.row(3).transpose();
        rill::all_reduce(workers, in.col(0).array() + 1, wide.col(1).head(6).array());
        good = good && wide.col(1).head(6) == (sum.col(0).array() + 3).matrix();
        rill::all_reduce(workers, in.transpose() * in, wide.topLeftCorner(4, 4));
        const MatrixXf gram = values(0, 6, 4).transpose() * values(0, 6, 4);
        return good && wide.topLeftCorner(4, 4) == 14 * gram;
    }));
}

TEST_CASE("eigen: coordinates are numbered as the type stores them") {
    CHECK(on_three([](auto& workers) {
        const MatrixXf in = values(workers.rank(), 3, 2);
        std::vector<float> columns(6), rows(6);
        rill::all_reduce(workers, in, columns);
        rill::all_reduce(workers, row_major(in), rows);
        return columns == std::vector<float>{0, 60, 120, 6, 66, 126} &&
               rows == std::vector<float>{0, 6, 60, 66, 120, 126};
    }));
}

TEST_CASE("eigen: a block of rows of a row-major matrix is contiguous, a block of columns is not") {
    row_major m(4, 6);
    MatrixXf n(4, 6);
    using span = std::span<const float>;
    const auto lies_in_one_piece = [](const auto& x) { return rill::detail::has_view<span>(x); };
    CHECK(lies_in_one_piece(m.middleRows(1, 2)));
    CHECK_FALSE(lies_in_one_piece(m.middleCols(1, 2)));
    CHECK(lies_in_one_piece(n.middleCols(1, 2)));
    CHECK_FALSE(lies_in_one_piece(n.middleRows(1, 2)));
    CHECK(lies_in_one_piece(n.col(1)));
    CHECK_FALSE(lies_in_one_piece(n.row(1)));
    CHECK(lies_in_one_piece(n.block(1, 1, 1, 1)));
    CHECK_FALSE(lies_in_one_piece(n.block(1, 1, 1, 2)));
    CHECK(lies_in_one_piece(n.transpose()));
    CHECK_FALSE(lies_in_one_piece(n.diagonal()));
    CHECK_FALSE(lies_in_one_piece(n + n));
}

TEST_CASE("eigen: all collectives, and compressors") {
    CHECK(on_three([](auto& workers) {
        const MatrixXf in = values(workers.rank(), 4, 3), sum = sum_of_values(4, 3);
        bool good = true;
        MatrixXf out = MatrixXf::Zero(5, 3);
        rill::reduce(workers, in, out.topRows(4), 2);
        good = good && out.topRows(4) == (workers.rank() == 2 ? sum : MatrixXf::Zero(4, 3));
        rill::broadcast(workers, out.topRows(4), 2);
        good = good && out.topRows(4) == sum;

        VectorXf part(4);
        rill::reduce_scatter(workers, 2 * in, part);
        good = good && part == 2 * sum.col(workers.rank());
        rill::all_gather(workers, part.reverse(), out.bottomRows(4));
        good = good && out.bottomRows(4) == 2 * sum.colwise().reverse();
        MatrixXf gathered(4, 3);
        rill::all_gather(workers, part / 2, gathered);
        good = good && gathered == sum;

        auto codec = rill::compress::top_k{.count = 2}.bind(12);
        rill::all_reduce(workers, in.array() + 1, out.topRows(4).array(), codec);
        MatrixXf largest = MatrixXf::Zero(4, 3);
        largest(3, 1) = sum(3, 1) + 3;
        largest(3, 2) = sum(3, 2) + 3;
        return good && out.topRows(4) == largest;
    }));
}

TEST_CASE("eigen: operations in the background keep blocks and expressions") {
    CHECK(on_three([](auto& workers) {
        const MatrixXf in = values(workers.rank(), 4, 3);
        MatrixXf out = MatrixXf::Zero(5, 3);
        rill::start_all_reduce(workers, 2 * in - in, out.bottomRows(4)).get();
        return out.bottomRows(4) == sum_of_values(4, 3);
    }));
    using rill::detail::is_lasting;
    static_assert(is_lasting<MatrixXf&> && is_lasting<block> && is_lasting<Eigen::Map<const MatrixXf>>);
    static_assert(!is_lasting<MatrixXf> && !is_lasting<sum_of_two> && !is_lasting<Eigen::Ref<const VectorXf>>);
    using rill::detail::is_evaluated_at_start;
    static_assert(is_evaluated_at_start<sum_of_two> && is_evaluated_at_start<tensors<MatrixXf&, sum_of_two>>);
    static_assert(!is_evaluated_at_start<sum_of_two&> && !is_evaluated_at_start<block> &&
                  !is_evaluated_at_start<MatrixXf>);
}

TEST_CASE("eigen: the start of an operation evaluates an expression, whose temporaries do not outlive it") {
    CHECK(on_three([](auto& workers) {
        const auto made = [&] { return values(workers.rank(), 4, 3); };
        MatrixXf added = made();
        MatrixXf sum(4, 3), scattered(4, 1), gathered(4, 3), reduced(4, 3), largest(4, 3);
        VectorXf pair(24);
        auto codec = rill::compress::top_k{.count = 12}.bind(12);
        rill::request all[] = {
            rill::start_all_reduce(workers, made() + added, sum),
            rill::start_all_reduce(workers, made() + added, largest, codec),
            rill::start_reduce_scatter(workers, made() + added, scattered),
            rill::start_all_gather(workers, (made() + added).col(workers.rank()), gathered),
            rill::start_reduce(workers, made() + added, reduced, 0),
            rill::start_all_reduce(workers, tensors{made() + added, added}, pair),
        };
        added.setConstant(-1);  // too late: the expression has been evaluated on all ranks
        for (rill::request& each : all) each.get();
        const MatrixXf due = 2 * sum_of_values(4, 3);
        bool good = sum == due && largest == due && scattered == due.col(workers.rank());
        for (int rank = 0; rank < 3; ++rank) good = good && gathered.col(rank) == 2 * values(rank, 4, 3).col(rank);
        good = good && pair.head(12) == due.reshaped() && pair.tail(12) == sum_of_values(4, 3).reshaped();
        return good && (workers.rank() != 0 || reduced == due);
    }));
}

TEST_CASE("eigen: the layers of a model in one operation") {
    CHECK(on_three([](auto& workers) {
        const int rank = workers.rank();
        std::vector<MatrixXf> weights{values(rank, 3, 2), values(rank, 2, 5)};
        VectorXf bias = values(rank, 4, 1), twice(4);
        rill::all_reduce(workers, tensors{weights, bias, 2 * bias}, tensors{weights, bias, twice});
        return weights[0] == sum_of_values(3, 2) && weights[1] == sum_of_values(2, 5) && bias == sum_of_values(4, 1) &&
               twice == 2 * bias;
    }));
}

TEST_CASE("eigen: contiguous tensors are sent from their own memory") {
    std::array<bool, 3> good{};
    support::on_watched_ranks(3, [&](support::watched& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        MatrixXf in = values(net.rank(), 50, 4), out(50, 6);
        rill::all_reduce(workers, in.leftCols(3), out.rightCols(3));
        using span = std::span<const float>;
        const span memory[] = {span(in.data(), 150), span(out.data() + 150, 150)};
        const auto direct = net.take<float>(memory);
        rill::all_reduce(workers, in.topRows(20), out.topLeftCorner(20, 4));
        const auto staged = net.take<float>(memory);
        good[static_cast<std::size_t>(net.rank())] =
            direct.sent > 0 && direct.from_elsewhere == 0 && staged.from_elsewhere == staged.sent;
    });
    CHECK((good[0] && good[1] && good[2]));
}

#ifndef RILL_TEST_SANITIZED
TEST_CASE("eigen: a steady state allocates nothing, for contiguous and for strided tensors") {
    unsigned long allocated = 1;
    rill::in_process::run(1, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        MatrixXf in = values(0, 50, 4), out(60, 4);
        const auto step = [&] {
            rill::all_reduce(workers, in, in);
            rill::all_reduce(workers, 2 * in + in, out.topRows(50));
        };
        for (int i = 0; i < 100; ++i) step();
        const unsigned long before = all_allocations();
        step();
        allocated = all_allocations() - before;
    });
    CHECK(allocated == 0);
}
#endif

TEST_CASE("eigen: the state and the contributions of rounds") {
    CHECK(on_three([](auto& workers) {
        rill::rounds steps{workers, rill::topology::tree{1}};
        MatrixXf model = MatrixXf::Constant(4, 3, 1.0F), update(5, 2);
        bool is_right = true;
        while (steps.next(model.block(1, 0, 2, 3))) {
            is_right = is_right && model(1, 2) == static_cast<float>(steps.number());
            steps.reduce(values(workers.rank(), 5, 2) * 2, update);
            if (!steps.is_root()) continue;
            is_right = is_right && update == 2 * sum_of_values(5, 2);
            model.array() += 1.0F;
            if (steps.number() == 3) steps.end();
        }
        return is_right;
    }));
}

TEST_CASE("eigen: blocks that share elements are refused, blocks that only interleave are not") {
    using rill::detail::have_apart;
    constexpr auto in_place = rill::detail::sharing::same_coordinates;
    Eigen::MatrixXf m = Eigen::MatrixXf::Ones(6, 6);
    CHECK(have_apart(m.row(0), m.row(1), in_place));
    CHECK(have_apart(m.topRows(3), m.bottomRows(3), in_place));
    CHECK(have_apart(m.topRows(3), m.topRows(3), in_place));
    CHECK(have_apart(m, m, in_place));
    CHECK(have_apart(m + m, m, in_place));
    CHECK(!have_apart(m.topRows(3), m.middleRows(1, 3), in_place));
    CHECK(!have_apart(m.leftCols(3), m.middleCols(1, 3), in_place));
    CHECK(!have_apart(m.topRows(3), m.topRows(3), rill::detail::sharing::none));
    support::on_watched_ranks(2, [&](support::watched& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        CHECK_THROWS_AS(rill::all_reduce(workers, m.leftCols(3), m.middleCols(1, 3)), rill::contract_violation);
    });
}
