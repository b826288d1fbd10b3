#include <rill/stream/stream.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace rill;
using namespace rill::stream_tests;

TEST_CASE("a stream begins empty, sparse and without coordinates") {
    const stream<float> none;
    CHECK(none.dimension() == 0);
    CHECK(none.count() == 0);
    CHECK_FALSE(none.is_dense());
    const stream<float> empty(10);
    CHECK(empty.range() == segment{0, 10});
    CHECK(empty.count() == 0);
}

TEST_CASE("push_back takes ascending coordinates of the range only") {
    stream<double> s;
    s.clear({10, 20});
    CHECK_THROWS_AS(s.push_back(9, 1), contract_violation);
    CHECK_THROWS_AS(s.push_back(20, 1), contract_violation);
    s.push_back(12, 1);
    CHECK_THROWS_AS(s.push_back(12, 1), contract_violation);
    CHECK_THROWS_AS(s.push_back(11, 1), contract_violation);
    s.push_back(19, 2);
    CHECK(s.count() == 2);  // a refused entry leaves nothing behind
    CHECK(s.values().size() == s.indices().size());
    s.make_dense({0, 3});
    CHECK_THROWS_AS(s.push_back(1, 1), contract_violation);
}

TEST_CASE("coordinates must fit the index type") {
    constexpr std::size_t limit = std::size_t{1} << 32;
    stream<float, std::uint32_t> narrow;
    narrow.clear({limit - 10, limit});
    narrow.push_back(limit - 1, 1.0F);
    CHECK(narrow.indices().front() == 0xFFFFFFFFU);
    CHECK_THROWS_AS(narrow.clear({limit - 10, limit + 1}), contract_violation);
    stream<float, std::uint64_t> wide;
    wide.clear({limit, limit + 5});
    wide.push_back(limit + 4, 1.0F);
    CHECK(wide.indices().front() == limit + 4);
}

TEST_CASE("sparse room is filled and shrunk") {
    stream<std::int32_t> s;
    const auto room = s.make_sparse({5, 50}, 4);
    room.indices[0] = 7;
    room.values[0] = -7;
    room.indices[1] = 49;
    room.values[1] = 3;
    s.shrink(2);
    stream<std::int32_t> expected;
    expected.clear({5, 50});
    expected.push_back(7, -7);
    expected.push_back(49, 3);
    CHECK(s == expected);
    stream<std::int32_t> copied;
    copied.assign(s.view());
    CHECK(copied == s);
    expected.values()[1] = 4;
    CHECK_FALSE(s == expected);
    CHECK_THROWS_AS(s.shrink(3), contract_violation);
    s.make_dense({0, 3});
    CHECK_THROWS_AS(s.shrink(2), contract_violation);
}

TEST_CASE_TEMPLATE("slices hold the entries within their range", Row, RILL_STREAM_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    const segment range{30, 95};
    for (float density : {0.0F, 0.2F, 1.0F}) {
        const auto s = sample<T, Index>(range, density, 4);
        std::size_t wrong = 0;
        for (std::size_t begin = range.begin; begin <= range.end; ++begin)
            for (std::size_t end = begin; end <= range.end; ++end) {
                const auto part = s.view({begin, end});
                stream<T, Index> expected;
                if (s.is_dense()) {
                    expected.make_dense({begin, end});
                    for (std::size_t i = begin; i < end; ++i)
                        expected.values()[i - begin] = s.values()[i - range.begin];
                } else {
                    expected.clear({begin, end});
                    for (std::size_t j = 0; j < s.count(); ++j)
                        if (begin <= s.indices()[j] && s.indices()[j] < end)
                            expected.push_back(s.indices()[j], s.values()[j]);
                }
                stream<T, Index> copied;
                copied.assign(part);
                if (!(copied == expected)) ++wrong;
                // A slice of a slice is the slice.
                stream<T, Index> again;
                again.assign(s.view({range.begin, end}).slice({begin, end}));
                if (!(again == expected)) ++wrong;
            }
        CHECK(wrong == 0);
        CHECK_THROWS_AS(s.view({29, 40}), contract_violation);
        CHECK_THROWS_AS(s.view({40, 96}), contract_violation);
    }
}

TEST_CASE_TEMPLATE("copy_dense fills gaps with the neutral element", Row, RILL_STREAM_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    for (float density : {0.0F, 0.2F, 1.0F}) {
        const auto s = sample<T, Index>({100, 164}, density, 8);
        std::vector<T> expected(64, T{42}), copy(64);
        for (std::size_t j = 0; j < s.count(); ++j) expected[s.is_dense() ? j : s.indices()[j] - 100] = s.values()[j];
        copy_dense(s.view(), std::span<T>(copy), T{42});
        CHECK(copy == expected);
        std::vector<T> small(63);
        CHECK_THROWS_AS(copy_dense(s.view(), std::span<T>(small), T{0}), contract_violation);
    }
}
