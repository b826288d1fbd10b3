#include <rill/core/buffer_shelf.hpp>
#include <rill/core/bytes.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

using rill::buffer;
using rill::buffer_shelf;

TEST_CASE("buffer_shelf: capacities are at most an eighth larger than asked for, and are capacities of themselves") {
    for (std::size_t size = 1; size < (std::size_t{1} << 22); size += 1 + size / 97) {
        const std::size_t room = buffer_shelf::room_for(size);
        CHECK(room >= size);
        CHECK(room <= size + size / 8);
        CHECK(buffer_shelf::room_for(room) == room);
        CHECK(buffer_shelf::room_for(size + 1) >= room);
        if (size < buffer_shelf::least) CHECK(room == size);
    }
}

TEST_CASE("buffer_shelf: a buffer reuses the memory of an earlier one of its size") {
    if (!buffer_shelf::keeps) return;
    for (const std::size_t size : {buffer_shelf::least * 3 + 5, buffer_shelf::large * 3 + 5}) {
        buffer first(size);
        const std::byte* const place = first.data();
        CHECK(reinterpret_cast<std::uintptr_t>(place) % 64 == 0);
        buffer moved = std::move(first);
        CHECK(moved.data() == place);
        moved = buffer();
        buffer other(size * 2);
        CHECK(other.data() != place);
        const buffer again(size - 1);  // has the same capacity
        CHECK(again.data() == place);
    }
}

TEST_CASE("buffer_shelf: small buffers take no place from large ones") {
    if (!buffer_shelf::keeps) return;
    buffer large(buffer_shelf::large * 40);
    const std::byte* const place = large.data();
    {
        std::vector<buffer> small(buffer_shelf::places + 10);
        for (buffer& each : small) each.resize(buffer_shelf::least);
    }
    large = buffer();
    const buffer again(buffer_shelf::large * 40);
    CHECK(again.data() == place);
}

TEST_CASE("buffer_shelf: sizes that are no longer used give their places to others") {
    if (!buffer_shelf::keeps) return;
    for (const std::size_t least : {buffer_shelf::least, buffer_shelf::large}) {
        std::vector<buffer> unused(buffer_shelf::places);
        for (buffer& each : unused) each.resize(least);
        unused.clear();
        for (std::size_t size = 3 * least; size < 8 * least; size += least) {
            buffer first(size);
            const std::byte* const place = first.data();
            first = buffer();
            const buffer again(size);
            CHECK(again.data() == place);
        }
    }
}

TEST_CASE("buffer_shelf: memory that does not fit is freed, and buffers of all sizes hold what is written") {
    std::vector<buffer> all;
    for (int turn = 0; turn < 3; ++turn) {
        for (std::size_t i = 0; i < buffer_shelf::places + 10; ++i) {
            all.emplace_back(buffer_shelf::least + i * 2000, std::byte(i));
            all.emplace_back(i * 10, std::byte(i));
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].empty()) continue;
            CHECK(all[i].front() == std::byte(i / 2));
            CHECK(all[i].back() == std::byte(i / 2));
        }
        all.clear();
    }
}
