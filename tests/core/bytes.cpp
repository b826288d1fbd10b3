#include <rill/core/bytes.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using namespace rill;

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
