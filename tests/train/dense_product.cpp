#include <rill/core/random.hpp>
#include <rill/train/dense_product.hpp>

#include "../support/allocations.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

template <class T>
std::vector<T> random_values(std::size_t n, std::uint64_t seed) {
    random_sequence random(random_key{seed});
    std::vector<T> values(n);
    for (T& value : values) value = static_cast<T>(random.uniform() - 0.5F);
    return values;
}

template <class T>
T at(const matrix_view<const T>& m, std::size_t row, std::size_t column) {
    return m.data[row * m.row_stride() + column * m.column_stride()];
}

template <class T>
void check_product(std::size_t rows, std::size_t depth, std::size_t columns, bool left_turned, bool right_turned) {
    CAPTURE(rows);
    CAPTURE(depth);
    CAPTURE(columns);
    const std::vector<T> a = random_values<T>(rows * depth, 1), b = random_values<T>(depth * columns, 2);
    const matrix_view<const T> left{a.data(), rows, depth, left_turned}, right{b.data(), depth, columns, right_turned};
    std::vector<T> c(rows * columns, std::numeric_limits<T>::quiet_NaN());
    const unsigned long before = allocations();
    multiply(left, right, matrix_view<T>{c.data(), rows, columns});
    CHECK(allocations() == before);
    double worst = 0;
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < depth; ++k) sum += double(at(left, i, k)) * double(at(right, k, j));
            const double error = std::abs(sum - double(c[i * columns + j]));
            if (!(error <= worst)) worst = error;
        }
    CHECK(worst < (sizeof(T) == 4 ? 1e-4 : 1e-12));
}

}  // namespace

TEST_CASE_TEMPLATE("dense_product: agrees with the definition", T, float, double) {
    for (std::size_t rows : {1U, 32U, 37U})
        for (std::size_t depth : {1U, 10U, 130U})
            for (std::size_t columns : {1U, 10U, 128U, 131U}) {
                check_product<T>(rows, depth, columns, false, false);
                check_product<T>(rows, depth, columns, true, false);
                check_product<T>(rows, depth, columns, false, true);
            }
    check_product<T>(3, 300, 5, false, true);
}

TEST_CASE("dense_product: a transposed view exchanges the strides") {
    const matrix_view<const float> view{nullptr, 2, 5};
    CHECK(view.row_stride() == 5);
    CHECK(view.column_stride() == 1);
    CHECK(view.transposed().rows == 5);
    CHECK(view.transposed().row_stride() == 1);
    CHECK(view.transposed().column_stride() == 5);
    CHECK_FALSE(view.transposed().transposed().is_transposed);
}
