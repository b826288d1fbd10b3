#include <rill/core/bytes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

using namespace rill;

TEST_CASE("aligned vectors begin on a cache line and leave new numbers uninitialised") {
    for (std::size_t n : {1U, 3U, 1000U}) {
        const aligned_vector<float> v(n);
        CHECK(reinterpret_cast<std::uintptr_t>(v.data()) % 64 == 0);
    }
    aligned_vector<std::uint32_t> v(100);
    std::fill(v.begin(), v.end(), 7U);
    v.resize(10);
    v.resize(100);  // the same memory again: a value-initialising vector would clear it
    CHECK(std::count(v.begin(), v.end(), 7U) == 100);
    v.resize(10);
    v.resize(20, 8U);
    CHECK(v[19] == 8U);
    const aligned_vector<std::string> text(3);
    CHECK(text[2].empty());
    CHECK_THROWS_AS(aligned_allocator<double>{}.allocate(~std::size_t{0} / 4), std::bad_array_new_length);
}

TEST_CASE("pieces keep their order and add up") {
    const std::byte bytes[10] = {};
    byte_pieces pieces;
    CHECK(pieces.count() == 0);
    CHECK(pieces.size_bytes() == 0);
    pieces.push({bytes, 3});
    pieces.push({});
    pieces.push({bytes + 3, 5});
    CHECK(pieces.count() == 3);
    CHECK(pieces.size_bytes() == 8);
    CHECK(pieces[2].data() == bytes + 3);
    CHECK(pieces.end() - pieces.begin() == 3);
    const byte_pieces one(byte_view(bytes, 10));
    CHECK(one.count() == 1);
    CHECK(one.size_bytes() == 10);
}
