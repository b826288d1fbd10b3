#include <doctest/doctest.h>

#include <rill/core/random.hpp>
#include <rill/kernel/index_coding.hpp>
#include <rill/kernel/index_rows.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace rill;

namespace {

/// The coordinates of `universe` in rows of `columns`, of which each is chosen with probability `density`.
template <class Index>
std::vector<Index> some_rows(std::size_t columns, segment universe, double density, std::uint64_t seed) {
    std::vector<Index> made;
    const counter_rng random(random_key{seed});
    for (std::size_t i = universe.begin; i < universe.end; ++i)
        if (random.uniform(i / columns) < density) made.push_back(static_cast<Index>(i));
    return made;
}

template <class Index>
std::vector<std::byte> encoded(std::size_t columns, const std::vector<Index>& indices, segment universe) {
    const std::span<const Index> all(indices);
    std::vector<std::byte> bytes(kernel::encoded_index_bytes(index_coding::whole_rows, all, universe, columns));
    CHECK(kernel::encode_indices(index_coding::whole_rows, all, universe, bytes, columns) == bytes.size());
    return bytes;
}

template <class Index>
std::vector<Index> decoded(std::size_t columns, byte_view bytes, std::size_t count, segment universe) {
    std::vector<Index> out(count);
    kernel::check_index_count<Index>(index_coding::whole_rows, bytes, count, universe, columns);
    kernel::decode_indices(index_coding::whole_rows, bytes, count, universe, std::span<Index>(out), columns);
    return out;
}

std::vector<std::byte> bytes_of(std::vector<unsigned> values) {
    std::vector<std::byte> bytes;
    for (unsigned v : values) bytes.push_back(static_cast<std::byte>(v));
    return bytes;
}

}  // namespace

TEST_CASE_TEMPLATE("whole rows are read as they were written, also where the universe cuts rows", Index, std::uint32_t,
                   std::uint64_t) {
    constexpr Index last = std::numeric_limits<Index>::max();
    for (const std::size_t columns : {1U, 2U, 7U, 16U, 1000U})
        for (const segment universe : {segment{0, 0}, segment{0, 1}, segment{0, 2100}, segment{3, 18},
                                       segment{20, 2417}, segment{last - 3000, last}})
            for (const double density : {0.02, 0.4, 1.0})
                for (const std::uint64_t seed : {1U, 2U}) {
                    const auto indices = some_rows<Index>(columns, universe, density, seed);
                    const auto bytes = encoded(columns, indices, universe);
                    CHECK(decoded<Index>(columns, bytes, indices.size(), universe) == indices);
                }
}

TEST_CASE("golden bytes of whole rows") {
    const auto bytes = encoded<std::uint32_t>(3, {1, 2, 6, 7, 8, 9, 10}, {1, 11});  // rows 0, 2 and 3 of 4
    CHECK(bytes == bytes_of({3, 0, 0, 0, 0, 0, 0, 0, 0x0D}));
    CHECK(encoded<std::uint32_t>(3, {}, {1, 11}).empty());
}

TEST_CASE("a row's index costs as much as an entry's") {
    const auto indices = some_rows<std::uint32_t>(16, {0, 160'000}, 0.01, 3);
    const std::size_t rows = indices.size() / 16;
    const std::size_t due = 8 + kernel::elias_fano::size_of(rows, {0, 10'000});
    CHECK(encoded(16, indices, {0, 160'000}).size() == due);
    CHECK(kernel::whole_rows{16}.size_of(indices.size(), {0, 160'000}) == due);
    CHECK(kernel::whole_rows{16}.size_of(0, {0, 160'000}) == 0);
    CHECK_THROWS_AS(kernel::whole_rows{0}.size_of(3, {0, 8}), contract_violation);
}

TEST_CASE("a row that is not whole is refused, and the entry named") {
    const auto refused = [](std::vector<std::uint32_t> indices, segment universe) { encoded(4, indices, universe); };
    CHECK_THROWS_WITH_AS(refused({4, 5, 6, 7, 8, 9, 11}, {0, 20}),
                         "rill: coordinate 8 has an entry and coordinate 10 of the same row of 4 has none; whole_rows "
                         "needs whole rows",
                         invalid_value);
    CHECK_THROWS_WITH_AS(refused({5, 6, 7}, {0, 20}),
                         "rill: coordinate 5 has an entry and coordinate 4 of the same row of 4 has none; whole_rows "
                         "needs whole rows",
                         invalid_value);
    CHECK_THROWS_WITH_AS(refused({4, 5, 6}, {0, 8}),
                         "rill: coordinate 4 has an entry and coordinate 7 of the same row of 4 has none; whole_rows "
                         "needs whole rows",
                         invalid_value);
    CHECK_THROWS_WITH_AS(refused({4, 5, 7, 8, 9, 10, 11}, {0, 20}),
                         "rill: coordinate 4 has an entry and coordinate 6 of the same row of 4 has none; whole_rows "
                         "needs whole rows",
                         invalid_value);
    CHECK_NOTHROW(refused({5, 6}, {5, 7}));  // all of the row that lies inside
}

TEST_CASE("bytes that are not whole rows are refused with the defect") {
    const segment universe{1, 11};
    const auto read = [&](std::vector<unsigned> values, std::size_t count) {
        decoded<std::uint32_t>(3, bytes_of(values), count, universe);
    };
    CHECK_THROWS_WITH(read({3, 0, 0}, 7), "rill: whole-row indices: 3 bytes cannot hold 7");
    CHECK_THROWS_WITH(read({0}, 0), "rill: whole-row indices: 1 bytes cannot hold 0");
    CHECK_THROWS_WITH(read({3, 0, 0, 0, 0, 0, 0, 0, 0x0D}, 2),
                      "rill: whole-row indices: 3 rows of 3 cannot have 2 entries");
    CHECK_THROWS_WITH(read({2, 0, 0, 0, 0, 0, 0, 0, 0x03}, 9),
                      "rill: whole-row indices: 2 rows of 3 cannot have 9 entries");
    CHECK_THROWS_WITH(read({3, 0, 0, 0, 0, 0, 0, 0, 0x0D}, 8),
                      "rill: whole-row indices: 3 rows of 3 have 7 entries, expected 8");
    CHECK_THROWS_WITH(read({3, 0, 0, 0, 0, 0, 0, 0, 0x0D, 0}, 7), "rill: Elias-Fano indices: 2 bytes, expected 1");
    CHECK_THROWS_WITH(read({3, 0, 0, 0, 0, 0, 0, 0, 0x0C}, 7),
                      "rill: Elias-Fano indices: 2 bits are set in the upper part, expected 3");
}

TEST_CASE("random bytes are read as valid indices, or refused") {
    random_sequence random(random_key{4});
    std::size_t accepted = 0;
    for (int round = 0; round < 20000; ++round) {
        const std::size_t columns = 1 + random.below(3), begin = random.below(4), size = random.below(12);
        const segment universe{begin, begin + size};
        std::vector<std::byte> bytes(9 + random.below(2));
        bytes[0] = static_cast<std::byte>(random.below(5));
        for (std::size_t i = 8; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(random.below(random.below(256) + 1));
        const std::size_t count = random.below(8);
        try {
            const auto indices = decoded<std::uint32_t>(columns, bytes, count, universe);
            ++accepted;
            if (encoded(columns, indices, universe) != bytes) FAIL("another way to write the same rows");
        } catch (const protocol_error&) {
        }
    }
    CHECK(accepted > 10);
}
