#include <rill/compress/keep_all.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

using namespace rill;

TEST_CASE("keep_all sends the input itself, dense") {
    const auto input = compress_tests::gradient<float>(33, 1);
    auto codec = compress::keep_all{}.bind(33);
    const auto view = codec.encode(input);
    CHECK(view.is_dense());
    CHECK(view.range() == segment{0, 33});
    CHECK(view.values().data() == input.data());
    CHECK(codec.coded_dimension() == 33);
}
