#include <rill/core/aligned_vector.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

using rill::aligned_vector;
using rill::buffer;

namespace {

struct numbered {
    int number = 7;
    double value = 0.5;
};

struct alignas(128) wide {
    int value;
};

template <class T>
bool is_on_a_line(const aligned_vector<T>& all) {
    return reinterpret_cast<std::uintptr_t>(all.data()) % aligned_vector<T>::alignment == 0;
}

constexpr std::size_t too_many = ~std::size_t{0} - 7;  // of any type: more bytes than there are

}  // namespace

TEST_CASE("aligned_vector: it begins on a cache line and leaves new numbers uninitialised") {
    for (std::size_t n : {1U, 3U, 1000U, 100000U}) {
        CHECK(is_on_a_line(aligned_vector<float>(n)));
        CHECK(is_on_a_line(buffer(n)));
        CHECK(is_on_a_line(aligned_vector<wide>(n)));
    }
    CHECK(aligned_vector<char>::alignment == 64);
    CHECK(aligned_vector<wide>::alignment == 128);
    aligned_vector<std::uint32_t> v(100);
    std::fill(v.begin(), v.end(), 7U);
    v.resize(10);
    v.resize(100);  // the same memory again: a value-initialising vector would clear it
    CHECK(std::count(v.begin(), v.end(), 7U) == 100);
    v.resize(10);
    v.resize(20, 8U);
    CHECK(v[9] == 7U);
    CHECK(v[10] == 8U);
    CHECK(v[19] == 8U);
}

TEST_CASE("aligned_vector: elements with a default are made from it") {
    aligned_vector<numbered> all(3);
    CHECK(all[2].number == 7);
    all[0].number = 1;
    all.resize(1000);
    CHECK(all[0].number == 1);
    CHECK(std::all_of(all.begin() + 1, all.end(), [](const numbered& each) { return each.number == 7; }));
}

TEST_CASE("aligned_vector: constructors") {
    CHECK(aligned_vector<int>().empty());
    CHECK(aligned_vector<int>(std::size_t{0}).empty());
    CHECK(aligned_vector<std::size_t>(std::size_t{2}, std::size_t{5}) == aligned_vector<std::size_t>{5, 5});
    CHECK(aligned_vector<int>(2, 5) == aligned_vector<int>{5, 5});
    const std::list<short> list = {1, -2, 3};
    CHECK(aligned_vector<int>(list.begin(), list.end()) == aligned_vector<int>{1, -2, 3});
    CHECK(aligned_vector<int>(list.begin(), list.begin()).empty());
    CHECK(aligned_vector<int>{1, 2} != aligned_vector<int>{1, 2, 3});
    CHECK(aligned_vector<int>{1, 2} != aligned_vector<int>{1, 3});
    CHECK(std::is_nothrow_move_constructible_v<aligned_vector<int>>);
    CHECK(std::is_nothrow_move_assignable_v<aligned_vector<int>>);
}

TEST_CASE("aligned_vector: it grows as std::vector does, and keeps what it holds") {
    aligned_vector<std::uint64_t> all;
    std::vector<std::uint64_t> same;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        all.push_back(i * i);
        same.push_back(i * i);
        REQUIRE(all.capacity() == same.capacity());
    }
    all.push_back(all.front());
    same.push_back(same.front());
    all.resize(1500);
    all.reserve(5000);
    const std::uint64_t* const first = all.data();
    all.resize(5000);
    CHECK(all.capacity() == 5000);
    CHECK(all.data() == first);
    CHECK(std::equal(same.begin(), same.end(), all.begin()));
    all.clear();
    CHECK(all.empty());
    CHECK(all.capacity() == 5000);
}

TEST_CASE("aligned_vector: a value of its own can be given") {
    aligned_vector<int> all{4, 5};
    all.resize(1000, all[1]);
    CHECK(all.front() == 4);
    CHECK(all.back() == 5);
    all.assign(5000, all[0]);
    CHECK(all == aligned_vector<int>(5000, 4));
    all.assign(2, 6);
    CHECK(all == aligned_vector<int>{6, 6});
    const int more[] = {1, 2, 3};
    all.assign(more, more + 3);
    CHECK(all == aligned_vector<int>{1, 2, 3});
    all.append(more + 1, more + 3);
    CHECK(all == aligned_vector<int>{1, 2, 3, 2, 3});
}

TEST_CASE("aligned_vector: copies and moves") {
    aligned_vector<int> all{1, 2, 3};
    aligned_vector<int> copy = all;
    copy[0] = 9;
    CHECK(all[0] == 1);
    const aligned_vector<int>& same = all;
    all = same;
    CHECK(all == aligned_vector<int>{1, 2, 3});
    copy = aligned_vector<int>(100, 8);
    const int* const memory = copy.data();
    copy = all;
    CHECK(copy.data() == memory);
    CHECK(copy == all);
    aligned_vector<int> moved = std::move(copy);
    CHECK(moved.data() == memory);
    CHECK(copy.empty());  // NOLINT(bugprone-use-after-move)
    all = std::move(moved);
    CHECK(all.data() == memory);
    CHECK(moved.empty());  // NOLINT(bugprone-use-after-move)
    aligned_vector<int>& self = all;
    all = std::move(self);
    CHECK(all == aligned_vector<int>{1, 2, 3});
    moved.push_back(4);
    swap(all, moved);
    CHECK(all == aligned_vector<int>{4});
    CHECK(moved == aligned_vector<int>{1, 2, 3});
    all = {};
    CHECK(all.empty());
    copy = all;
    CHECK(copy.empty());
}

TEST_CASE_TEMPLATE("aligned_vector: where memory is short it stays as it was", T, std::byte, int, numbered) {
    CHECK_THROWS_AS(static_cast<void>(aligned_vector<T>(too_many)), std::bad_alloc);
    CHECK_THROWS_AS(static_cast<void>(aligned_vector<T>(too_many, T())), std::bad_alloc);
    aligned_vector<T> all(3, T());
    const T* const memory = all.data();
    CHECK_THROWS_AS(all.resize(too_many), std::bad_alloc);
    CHECK_THROWS_AS(all.resize(too_many, T()), std::bad_alloc);
    CHECK_THROWS_AS(all.assign(too_many, T()), std::bad_alloc);
    CHECK_THROWS_AS(all.reserve(too_many), std::bad_alloc);
    CHECK(all.data() == memory);
    CHECK(all.size() == 3);
    CHECK(all.capacity() == 3);
}
