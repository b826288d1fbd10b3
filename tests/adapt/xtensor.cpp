#include <rill/adapt/xtensor.hpp>

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/collective/tensors.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>

#include "../support/watched.hpp"

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xarray.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

using rill::OutputTensor;
using rill::Tensor;
using rill::tensors;

namespace {

using matrix = xt::xtensor<float, 2>;
using by_columns = xt::xtensor<float, 2, xt::layout_type::column_major>;
using order = rill::coordinate_order;

static_assert(OutputTensor<matrix> && OutputTensor<xt::xarray<double>&> && OutputTensor<by_columns>);
static_assert(Tensor<const matrix&> && !OutputTensor<const matrix&>);
using sum_of_two = decltype(std::declval<matrix&>() + std::declval<matrix&>());
static_assert(Tensor<sum_of_two> && !OutputTensor<sum_of_two>);
using column = decltype(xt::view(std::declval<matrix&>(), xt::all(), 1));
using column_of_const = decltype(xt::view(std::declval<const matrix&>(), xt::all(), 1));
static_assert(OutputTensor<column> && Tensor<column_of_const> && !OutputTensor<column_of_const>);
static_assert(rill::detail::is_lasting<matrix&> && rill::detail::is_lasting<column> &&
              !rill::detail::is_lasting<matrix>);
static_assert(rill::detail::order_of<matrix> == order::row_major);
static_assert(rill::detail::order_of<by_columns> == order::column_major);
static_assert(rill::detail::order_of<xt::xtensor<float, 1>> == order::any);

matrix values(int rank, std::size_t rows, std::size_t columns) {
    matrix made({rows, columns});
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            made(i, j) = static_cast<float>(rank + 1) * static_cast<float>(10 * i + j);
    return made;
}

/// The sum over three ranks of the matrices that `values` makes for them.
matrix sum_of_values(std::size_t rows, std::size_t columns) { return 6.0F * values(0, rows, columns); }

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

TEST_CASE("xtensor: containers, adaptors, views and expressions are inputs and outputs") {
    CHECK(on_three([](auto& workers) {
        const matrix in = values(workers.rank(), 6, 4), sum = sum_of_values(6, 4);
        bool good = true;
        matrix out = xt::zeros<float>({6, 4});
        rill::all_reduce(workers, in, out);
        good = good && out == sum;
        rill::all_reduce(workers, 2.0F * in - xt::abs(in), out);
        good = good && out == sum;

        matrix wide = xt::ones<float>({8, 6});  // strided input and output; the output is an rvalue
        rill::all_reduce(workers, xt::view(in, xt::all(), xt::range(1, 3)),
                         xt::view(wide, xt::range(2, 8), xt::range(3, 5)));
        good = good && xt::view(wide, xt::range(2, 8), xt::range(3, 5)) == xt::view(sum, xt::all(), xt::range(1, 3));
        xt::view(wide, xt::range(2, 8), xt::range(3, 5)) = 1.0F;
        good = good && wide == xt::ones<float>({8, 6});

        std::vector<float> raw(24);
        rill::all_reduce(workers, in, xt::adapt(raw, std::array<std::size_t, 2>{6, 4}));
        good = good && xt::adapt(raw, std::array<std::size_t, 2>{6, 4}) == sum;

        xt::xarray<float> any = in, result = xt::zeros<float>({3, 4});
        rill::all_reduce(workers, xt::strided_view(any, {xt::range(0, 6, 2)}), result);
        return good && result == xt::view(sum, xt::range(0, 6, 2));
    }));
}

TEST_CASE("xtensor: coordinates are numbered as the type stores them") {
    CHECK(on_three([](auto& workers) {
        const matrix in = values(workers.rank(), 3, 2);
        std::vector<float> columns(6), rows(6), dynamic(6);
        rill::all_reduce(workers, in, rows);
        rill::all_reduce(workers, by_columns(in), columns);
        xt::xarray<float, xt::layout_type::dynamic> any({3, 2}, xt::layout_type::column_major);
        any = in;  // stored column by column, numbered row by row
        rill::all_reduce(workers, any, dynamic);
        return columns == std::vector<float>{0, 60, 120, 6, 66, 126} && rows == dynamic &&
               rows == std::vector<float>{0, 6, 60, 66, 120, 126};
    }));
}

TEST_CASE("xtensor: the start of an operation evaluates an expression that is a temporary") {
    CHECK(on_three([](auto& workers) {
        matrix added = values(workers.rank(), 4, 3), sum({4, 3});
        auto request = rill::start_all_reduce(workers, values(workers.rank(), 4, 3) + added, sum);
        added.fill(-1);  // too late: the expression has been evaluated
        request.get();
        return sum == 2.0F * sum_of_values(4, 3);
    }));
    static_assert(rill::detail::is_evaluated_at_start<sum_of_two> && !rill::detail::is_evaluated_at_start<column>);
}

TEST_CASE("xtensor: whole rows are contiguous, columns are not") {
    matrix m({4, 6});
    by_columns n({4, 6});
    const auto lies_in_one_piece = [](const auto& x) { return rill::detail::has_view<std::span<const float>>(x); };
    CHECK(lies_in_one_piece(m));
    CHECK(lies_in_one_piece(n));
    CHECK(lies_in_one_piece(xt::view(m, xt::range(1, 3))));
    CHECK(lies_in_one_piece(xt::view(m, 1)));
    CHECK_FALSE(lies_in_one_piece(xt::view(m, xt::all(), xt::range(1, 3))));
    CHECK_FALSE(lies_in_one_piece(xt::view(m, xt::all(), 1)));
    CHECK(lies_in_one_piece(xt::view(m, 1, xt::range(1, 3))));
    CHECK_FALSE(lies_in_one_piece(m + m));
}

TEST_CASE("xtensor: all collectives, and compressors") {
    CHECK(on_three([](auto& workers) {
        const matrix in = values(workers.rank(), 3, 4), sum = sum_of_values(3, 4);
        bool good = true;
        matrix wide = xt::zeros<float>({3, 5});
        auto out = xt::view(wide, xt::all(), xt::range(1, 5));
        rill::reduce(workers, in, out, 2);
        good = good && out == (workers.rank() == 2 ? sum : matrix(xt::zeros<float>({3, 4})));
        rill::broadcast(workers, out, 2);
        good = good && out == sum;

        xt::xtensor<float, 1> part(std::array<std::size_t, 1>{4});
        rill::reduce_scatter(workers, 2.0F * in, part);
        good = good && part == 2.0F * xt::view(sum, workers.rank());
        rill::all_gather(workers, part, out);
        good = good && out == 2.0F * sum;

        auto codec = rill::compress::top_k{.count = 2}.bind(12);
        rill::all_reduce(workers, in + 1.0F, out, codec);
        matrix largest = xt::zeros<float>({3, 4});
        largest(2, 2) = sum(2, 2) + 3;
        largest(2, 3) = sum(2, 3) + 3;
        return good && out == largest;
    }));
}

TEST_CASE("xtensor: the layers of a model in one operation") {
    CHECK(on_three([](auto& workers) {
        const int rank = workers.rank();
        std::vector<matrix> weights{values(rank, 3, 2), values(rank, 2, 5)};
        matrix bias = values(rank, 4, 1);
        rill::all_reduce(workers, tensors{weights, bias}, tensors{weights, bias});
        return weights[0] == sum_of_values(3, 2) && weights[1] == sum_of_values(2, 5) && bias == sum_of_values(4, 1);
    }));
}

TEST_CASE("xtensor: contiguous tensors are sent from their own memory") {
    std::array<bool, 3> good{};
    support::on_watched_ranks(3, [&](support::watched& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        matrix in = values(net.rank(), 6, 50), out({8, 50});
        rill::all_reduce(workers, xt::view(in, xt::range(2, 6)), xt::view(out, xt::range(1, 5)));
        using span = std::span<const float>;
        const span memory[] = {span(in.data() + 100, 200), span(out.data() + 50, 200)};
        const auto direct = net.take<float>(memory);
        rill::all_reduce(workers, xt::view(in, xt::all(), 3), xt::view(out, xt::range(0, 6), 4));
        const auto staged = net.take<float>(memory);
        good[static_cast<std::size_t>(net.rank())] =
            direct.sent > 0 && direct.from_elsewhere == 0 && staged.from_elsewhere == staged.sent;
    });
    CHECK((good[0] && good[1] && good[2]));
}

TEST_CASE("xtensor: views that share elements are refused, views that only interleave are not") {
    using rill::detail::have_apart;
    constexpr auto in_place = rill::detail::sharing::same_coordinates;
    xt::xtensor<float, 2> m = xt::ones<float>({6, 6});
    const auto columns = [&](int from, int to) { return xt::view(m, xt::all(), xt::range(from, to)); };
    CHECK(have_apart(xt::view(m, xt::all(), 0), xt::view(m, xt::all(), 1), in_place));
    CHECK(have_apart(columns(0, 3), columns(3, 6), in_place));
    CHECK(have_apart(columns(0, 3), columns(0, 3), in_place));
    CHECK(!have_apart(columns(0, 3), columns(2, 5), in_place));
    xt::xtensor<float, 3> cube = xt::ones<float>({4, 4, 4});
    const auto part = [&](int from) { return xt::view(cube, xt::range(from, from + 2), xt::all(), xt::range(0, 2)); };
    CHECK(have_apart(part(0), part(2), in_place));
    CHECK(!have_apart(part(0), part(1), in_place));
}
