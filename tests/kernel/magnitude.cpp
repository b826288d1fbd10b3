#include <doctest/doctest.h>

#include <rill/kernel/magnitude.hpp>

#include <limits>
#include <vector>

using namespace rill;

TEST_CASE("magnitudes order as absolute values do") {
    static_assert(kernel::magnitude(-0.0F) == kernel::magnitude(0.0F));
    static_assert(kernel::magnitude(-2.0) > kernel::magnitude(1.5));
    static_assert(kernel::magnitude(std::numeric_limits<std::int32_t>::min()) == 0x80000000U);
    static_assert(kernel::magnitude(std::int64_t{-3}) == 3);
    static_assert(kernel::magnitude(std::numeric_limits<double>::max()) < kernel::largest_magnitude<double>);
    static_assert(kernel::magnitude(std::numeric_limits<float>::quiet_NaN()) > kernel::largest_magnitude<float>);
    static_assert(kernel::largest_magnitude<std::int32_t> == 0x80000000U);
}

TEST_CASE_TEMPLATE("the first value that is not finite is found", T, float, double) {
    for (std::size_t n : {1U, 63U, 64U, 65U, 200U})
        for (std::size_t at = 0; at < n; at += 7) {
            std::vector<T> x(n, std::numeric_limits<T>::lowest());
            CHECK(!kernel::find_non_finite<T>(x));
            x[n - 1] = std::numeric_limits<T>::quiet_NaN();
            x[at] = -std::numeric_limits<T>::infinity();
            CHECK(kernel::find_non_finite<T>(x) == at);
            CHECK(kernel::find_nan<T>(x) == (at == n - 1 ? std::optional<std::size_t>{} : n - 1));
        }
    CHECK(!kernel::find_non_finite<T>({}));
}

TEST_CASE("integers are always finite") {
    const std::vector<std::int32_t> x(100, std::numeric_limits<std::int32_t>::min());
    CHECK(!kernel::find_non_finite<std::int32_t>(x));
    CHECK_NOTHROW(kernel::refuse_nan<std::int32_t>(x));
}
