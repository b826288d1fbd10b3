#include <doctest/doctest.h>

#include <rill/kernel/index_coding.hpp>

#include "../support/sanitized.hpp"
#include "sparse_samples.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

using namespace rill;
using namespace rill::kernel_tests;

namespace {

/// Whether encoding takes time proportional to the universe.
constexpr bool is_wide(rill::index_coding coding) {
    return coding == rill::index_coding::bitmap || coding == rill::index_coding::huffman;
}

template <class Index>
std::vector<std::byte> encoded(rill::index_coding coding, const std::vector<Index>& indices, segment universe) {
    std::vector<std::byte> bytes(kernel::encoded_index_bytes<Index>(coding, indices, universe));
    CHECK(kernel::encode_indices<Index>(coding, indices, universe, bytes) == bytes.size());
    return bytes;
}

template <class Index>
std::vector<Index> decoded(rill::index_coding coding, byte_view bytes, std::size_t count, segment universe) {
    std::vector<Index> out(count);
    kernel::decode_indices<Index>(coding, bytes, count, universe, out);
    return out;
}

/// Decodes to valid indices or throws `protocol_error`; anything else fails the test.
template <class Index>
void decodes_or_throws(rill::index_coding coding, const std::vector<std::byte>& bytes, std::size_t count,
                       segment universe) {
    try {
        const std::vector<std::byte> exact(bytes);  // its own allocation: a sanitizer sees every read beyond it
        const auto indices = decoded<Index>(coding, exact, count, universe);
        bool valid = true;
        for (std::size_t i = 0; i < count; ++i) {
            valid = valid && universe.contains(static_cast<std::size_t>(indices[i]));
            valid = valid && (i == 0 || indices[i - 1] < indices[i]);
        }
        if (!valid) FAIL("indices out of order or outside");
    } catch (const protocol_error& e) {
        if (std::string(e.what()).size() <= 20) FAIL("an error that says too little");
    }
}

std::string hex(const std::vector<std::byte>& bytes) {
    std::string text;
    for (std::byte b : bytes) {
        const char* digits = "0123456789abcdef";
        text += {digits[std::to_integer<unsigned>(b) / 16], digits[std::to_integer<unsigned>(b) % 16]};
    }
    return text;
}

}  // namespace

TEST_CASE_TEMPLATE("indices survive every coding", Index, std::uint32_t, std::uint64_t) {
    const segment wide{1000, sizeof(Index) == 4 ? std::size_t{0xFFFFFFFF} : ~std::size_t{0}};
    for (const segment universe : {segment{0, 0}, segment{7, 8}, segment{0, 3000}, segment{100, 3107}, wide})
        for (float density : {0.0F, 0.001F, 0.05F, 0.5F, 1.0F}) {
            auto indices = random_sparse<float, Index>(universe.end, universe.begin,
                                                       std::min(universe.end, universe.begin + 3000), density)
                               .indices;
            if (universe.size() > 1000000) indices.push_back(static_cast<Index>(universe.end - 1));
            for (const auto coding : index_codings) {
                if (is_wide(coding) && universe.size() > 1000000) continue;
                const auto bytes = encoded(coding, indices, universe);
                CHECK(decoded<Index>(coding, bytes, indices.size(), universe) == indices);
            }
        }
}

TEST_CASE("every width of gap survives") {
    for (unsigned width = 0; width < 64; ++width)
        for (std::size_t count : {1U, 2U, 127U, 128U, 129U}) {
            std::vector<std::uint64_t> indices;
            std::uint64_t at = std::uint64_t{1} << width >> 1;
            for (std::size_t i = 0; i < count; ++i) {
                indices.push_back(at);
                const std::uint64_t gap = i % 3 == 0 ? at >> 7 : i % 5;
                if (gap > ~at - 1000) break;
                at += gap + 1;
            }
            const segment universe{0, ~std::size_t{0}};
            const auto bytes = encoded(rill::index_coding::packed_gaps, indices, universe);
            CHECK(decoded<std::uint64_t>(rill::index_coding::packed_gaps, bytes, indices.size(), universe) == indices);
        }
}

TEST_CASE_TEMPLATE("every build decodes Elias-Fano alike", Index, std::uint32_t, std::uint64_t) {
    random_sequence random(random_key{5});
    const std::size_t last = sizeof(Index) == 4 ? std::size_t{0xFFFFFFFF} : ~std::size_t{0} - 1;
    std::size_t accepted = 0;
    for (int round = 0; round < 600; ++round) {
        // Some hundred indices, spread evenly or in clusters, in universes of all sizes; every second encoding is
        // damaged.
        const unsigned scale = static_cast<unsigned>(random.below(sizeof(Index) == 4 ? 23 : 55));
        const std::size_t begin = round % 3 == 0 ? 0 : last - (std::size_t{700} << scale);
        std::vector<Index> indices;
        for (std::size_t at = begin + random.below(3); indices.size() < random.below(700);) {
            indices.push_back(static_cast<Index>(at));
            const std::size_t gap = random.below(4) == 0 ? 0 : random.below(std::size_t{2} << scale);
            if (gap >= last - at) break;
            at += gap + 1;
        }
        const segment universe{begin, round % 3 == 1 || indices.empty() ? last + 1 : std::size_t{indices.back()} + 1};
        auto bytes = encoded(rill::index_coding::elias_fano, indices, universe);
        if (round % 2 == 1 && !bytes.empty())
            for (std::size_t n = 1 + random.below(2); n > 0; --n)
                bytes[random.below(bytes.size())] ^= static_cast<std::byte>(1U << random.below(8));
        const auto outcome = [&](auto loops) {
            std::vector<Index> out(indices.size());
            try {
                kernel::elias_fano::decode_by<decltype(loops), Index>(bytes, out.size(), universe, out);
                return std::pair(out, std::string());
            } catch (const protocol_error& e) {
                return std::pair(std::vector<Index>(), std::string(e.what()));
            }
        };
        const auto portable = outcome(kernel::detail::portable_elias_fano{});
        REQUIRE(outcome(kernel::detail::native_elias_fano{}) == portable);
        if (round % 2 == 0) REQUIRE(portable.first == indices);
        accepted += portable.second.empty() ? 1U : 0U;
    }
    CHECK(accepted > 300);
    CHECK(accepted < 590);
}

TEST_CASE_TEMPLATE("every build detects Elias-Fano numbers that descend", Loops, kernel::detail::portable_elias_fano,
                   kernel::detail::native_elias_fano) {
    constexpr std::size_t n = 200;
    constexpr segment universe{7, 7 + n + 16 * n};  // four low bits
    std::vector<std::byte> bytes(kernel::elias_fano::size_of(n, universe));
    for (std::size_t i = 0; i < n; ++i) bytes[n / 2 + i / 8] |= static_cast<std::byte>(1U << i % 8);
    std::vector<std::uint32_t> out(n);
    for (std::size_t descends = 0; descends <= n; ++descends) {  // low bits: 5 before it, then 4
        CAPTURE(descends);
        for (std::size_t i = 0; i < n; i += 2)
            bytes[i / 2] = static_cast<std::byte>((i < descends ? 5U : 4U) | (i + 1 < descends ? 0x50U : 0x40U));
        const auto decode = [&] { kernel::elias_fano::decode_by<Loops, std::uint32_t>(bytes, n, universe, out); };
        if (descends == 0 || descends == n)
            CHECK_NOTHROW(decode());
        else
            CHECK_THROWS_AS(decode(), protocol_error);
    }

    // At the end of the 32-bit range: the numbers 47, which exceeds 32 there, and 32.
    constexpr segment last{(std::size_t{1} << 32) - 34, std::size_t{1} << 32};
    const std::vector<std::byte> beyond{std::byte{0x0F}, std::byte{0x0C}};
    REQUIRE(kernel::elias_fano::size_of(2, last) == beyond.size());
    CHECK_THROWS_AS((kernel::elias_fano::decode_by<Loops, std::uint32_t>(beyond, 2, last, std::span(out).first(2))),
                    protocol_error);
}

TEST_CASE_TEMPLATE("every build places bits alike", Index, std::uint32_t, std::uint64_t) {
    random_sequence random(random_key{6});
    std::size_t wrong = 0;
    for (int round = 0; round < 300; ++round) {
        const std::uint64_t sparse = std::uint64_t{1} << random.below(64), full = ~std::uint64_t{0};
        const std::uint64_t any = random.below(full);
        const std::uint64_t dense = any | random.below(full);  // 48 set bits, more or less
        const std::uint64_t words[] = {sparse, any, dense, ~sparse};
        const std::uint64_t word = round == 0 ? 0 : round == 1 ? full : words[round % 4];
        const Index base = static_cast<Index>(0U - random.below(100000));
        Index native[64 + kernel::detail::place_slack], portable[64 + kernel::detail::place_slack];
        const std::size_t count = kernel::detail::place_bits_native(word, base, native);
        REQUIRE(count == static_cast<std::size_t>(std::popcount(word)));
        REQUIRE(kernel::detail::place_bits(word, base, portable) == count);
        std::size_t i = 0;
        for (unsigned bit = 0; bit < 64; ++bit)
            if ((word >> bit & 1U) != 0) {
                wrong += native[i] == static_cast<Index>(base + bit) && portable[i] == native[i] ? 0U : 1U;
                ++i;
            }
    }
    CHECK(wrong == 0);
}

TEST_CASE("the code of a bitmap's bytes is complete, and shorter for more likely bytes") {
    struct {
        std::size_t count, size;
        std::uint64_t golden;
    } cases[] = {{1, 1, 0x8F7DE6D2D29793B1},
                 {1, 18446744073709551615U, 0xA46A9F5C29D0C8D1},
                 {7, 100, 0x65183DCE6FBF770B},
                 {1, 4, 0xC4C278709CCBF821},
                 {500, 1000, 0x901A3B63F2D73023},
                 {900, 1000, 0xED51394A36FCD7DD},
                 {3458764513820540928U, 17293822569102704640U, 0x719122FB557AF7C9},
                 {5, 27, 0x719122FB557AF7C9}};
    for (const auto& [count, size, golden] : cases) {
        const kernel::detail::byte_code code(count, size);
        std::uint64_t hash = 0, taken = 0;
        std::vector<unsigned> owners(4096, 0);
        bool is_ordered = true;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const unsigned bits = code.length(std::byte(byte)), first = code.code(std::byte(byte));
            hash = mix64(hash, bits, first);
            for (unsigned next = first; next < 4096; next += 1U << bits) ++owners[next], ++taken;
            const int more = count <= size - count ? 1 : -1;
            for (unsigned other = 0; other < 256; ++other)
                if ((std::popcount(other) - std::popcount(byte)) * more > 0 && code.length(std::byte(other)) < bits)
                    is_ordered = false;
        }
        CHECK(is_ordered);
        CHECK(taken == 4096);
        CHECK(*std::max_element(owners.begin(), owners.end()) == 1);
        CHECK(hash == golden);
    }
}

TEST_CASE("golden bytes of index codings") {
    const std::vector<std::uint32_t> indices{10, 11, 14, 30, 33};
    const segment universe{8, 35};
    CHECK(hex(encoded(rill::index_coding::raw, indices, universe)) == "0a0000000b0000000e0000001e00000021000000");
    CHECK(hex(encoded(rill::index_coding::bitmap, indices, universe)) == "4c004002");
    CHECK(hex(encoded(rill::index_coding::packed_gaps, indices, universe)) == "0402f202");
    const std::vector<std::uint64_t> high{std::uint64_t{1} << 40};
    CHECK(hex(encoded(rill::index_coding::raw, high, {0, ~std::size_t{0}})) == "0000000000010000");
    CHECK(hex(encoded(rill::index_coding::packed_gaps, high, {0, ~std::size_t{0}})) == "29000000000001");

    // v = 2 2 4 19 21 of at most 22: two low bits each, 2 2 0 3 1, then ones at 0 1 3 7 9 of 10 bits.
    CHECK(hex(encoded(rill::index_coding::elias_fano, indices, universe)) == "ca018b02");
    CHECK(hex(encoded(rill::index_coding::elias_fano, high, {0, ~std::size_t{0}})) == "000000000001000001");
    CHECK(hex(encoded(rill::index_coding::elias_fano, std::vector<std::uint32_t>{1, 2, 4}, {0, 5})) == "16");

    // The streams of the bytes 4c, 00 and 40 have 2, 1 and 1 bytes; the stream of the byte 02 has the rest.
    CHECK(hex(encoded(rill::index_coding::huffman, indices, universe)) ==
          "020000000000000001000000000000000100000000000000870100110a");
}

TEST_CASE("no indices take less than the Huffman coding's lower bound, wherever they lie") {
    for (const std::size_t size : {9U, 1000U, 20'001U})
        for (const float density : {0.003F, 0.02F, 0.06F, 0.25F, 0.5F, 0.9F, 1.0F})
            for (const bool clustered : {false, true}) {
                auto indices = random_sparse<float, std::uint32_t>(1, 0, size, density).indices;
                if (clustered)
                    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::uint32_t>(i);
                const std::size_t least = kernel::huffman_bitmap::least_coded_size(indices.size(), {0, size});
                const std::size_t coded =
                    kernel::encoded_index_bytes<std::uint32_t>(rill::index_coding::huffman, indices, {0, size});
                CHECK(kernel::huffman_bitmap::least_size(indices.size(), {0, size}) <= least + 1);
                CHECK(least <= coded);
                CHECK(2 * least >= (clustered ? 0 : coded));
            }
}

TEST_CASE("gaps of zero width cost no bits, and the smallest coding is found") {
    std::vector<std::uint32_t> all(1000), few{5, 70000};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
    CHECK(kernel::encoded_index_bytes<std::uint32_t>(rill::index_coding::packed_gaps, all, {0, 1000}) == 8);
    CHECK(kernel::smallest_index_coding<std::uint32_t>(all, {0, 1000}) == rill::index_coding::packed_gaps);
    CHECK(kernel::smallest_index_coding<std::uint32_t>({}, {0, 1000}) == rill::index_coding::raw);
    CHECK(kernel::smallest_index_coding<std::uint32_t>(few, {0, 100000}) == rill::index_coding::elias_fano);
    const auto half = random_sparse<float, std::uint32_t>(1, 0, 1000, 0.5F);
    CHECK(kernel::smallest_index_coding<std::uint32_t>(half.indices, {0, 1000}) == rill::index_coding::bitmap);
    const auto quarter = random_sparse<float, std::uint32_t>(1, 0, 20000, 0.25F);
    CHECK(kernel::smallest_index_coding<std::uint32_t>(quarter.indices, {0, 20000}) == rill::index_coding::huffman);
    const std::vector<std::uint32_t> last{0xFFFFFFFF};
    // The size is computed without visiting the empty part of the universe.
    CHECK(kernel::encoded_index_bytes<std::uint32_t>(rill::index_coding::huffman, last, {0, std::size_t{1} << 32}) >
          std::size_t{1} << 26);
    CHECK(kernel::smallest_index_coding<std::uint32_t>(last, {0, std::size_t{1} << 32}) == rill::index_coding::raw);
}

TEST_CASE_TEMPLATE("damaged bytes decode to valid indices or throw", Index, std::uint32_t, std::uint64_t) {
#ifdef RILL_TEST_SANITIZED  // the fuzz targets go on from such bytes
    const unsigned step = 31;
#else
    const unsigned step = 7;
#endif
    for (const segment universe : {segment{0, 300}, segment{50, 311}})
        for (float density : {0.02F, 0.6F}) {
            const auto indices = random_sparse<float, Index>(7, universe.begin, universe.end, density).indices;
            for (const auto coding : index_codings) {
                const auto bytes = encoded(coding, indices, universe);
                for (std::size_t size = 0; size < bytes.size(); ++size)
                    CHECK_THROWS_AS(decoded<Index>(coding, byte_view(bytes).first(size), indices.size(), universe),
                                    protocol_error);
                auto longer = bytes;
                longer.push_back(std::byte{0});
                CHECK_THROWS_AS(decoded<Index>(coding, longer, indices.size(), universe), protocol_error);
                for (std::size_t at = 0; at < bytes.size(); ++at)
                    for (unsigned value = 0; value < 256; value += (bytes.size() > 30 ? step : 1U)) {
                        auto damaged = bytes;
                        damaged[at] = static_cast<std::byte>(value);
                        decodes_or_throws<Index>(coding, damaged, indices.size(), universe);
                    }
                for (std::size_t count = 0; count < universe.size() + 5; ++count)
                    if (count != indices.size()) decodes_or_throws<Index>(coding, bytes, count, universe);
            }
        }
}

TEST_CASE("random bytes decode to valid indices or throw") {
    random_sequence random(random_key{11});
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> bytes(random.below(40));
        for (auto& b : bytes) b = static_cast<std::byte>(random.below(random.below(2) == 0 ? 256 : 9));
        const auto coding = index_codings[random.below(index_codings.size())];
        const std::size_t end = random.below(2) == 0 ? 64 : ~std::size_t{0};
        if (is_wide(coding) && end > 64) continue;
        decodes_or_throws<std::uint64_t>(coding, bytes, random.below(200), {0, end});
    }
}

TEST_CASE("a wrong count is refused before memory is allocated") {
    const std::vector<std::byte> bytes(4);
    const segment universe{0, ~std::size_t{0}};
    for (const auto coding :
         {rill::index_coding::raw, rill::index_coding::packed_gaps, rill::index_coding::elias_fano}) {
        CHECK_THROWS_AS(kernel::check_index_count<std::uint32_t>(coding, bytes, std::size_t{1} << 62, universe),
                        protocol_error);
        CHECK_THROWS_AS(kernel::check_index_count<std::uint32_t>(coding, bytes, ~std::size_t{0}, universe),
                        protocol_error);
    }
    CHECK_THROWS_AS(kernel::check_index_count<std::uint32_t>(rill::index_coding::bitmap, bytes, 33, {0, 32}),
                    protocol_error);
    std::vector<std::uint32_t> room(3);
    CHECK_THROWS_WITH_AS(kernel::decode_indices<std::uint32_t>(rill::index_coding::bitmap, bytes, 4, {0, 32}, room),
                         "rill: 4 indices are announced, with room for 3", protocol_error);
}

TEST_CASE("errors name the defect") {
    const auto decode = [](rill::index_coding coding, std::vector<unsigned> values, std::size_t count) {
        std::vector<std::byte> bytes;
        for (unsigned v : values) bytes.push_back(static_cast<std::byte>(v));
        decoded<std::uint32_t>(coding, bytes, count, {0, 12});
    };
    using enum rill::index_coding;
    CHECK_THROWS_WITH(decode(raw, {5, 0, 0, 0, 5, 0, 0, 0}, 2),
                      "rill: raw indices: number 1 is 5, expected one of [6, 12)");
    CHECK_THROWS_WITH(decode(raw, {5, 0, 0}, 1), "rill: raw indices: 3 bytes cannot hold 1");
    CHECK_THROWS_WITH(decode(bitmap, {1, 16}, 2), "rill: bitmap indices: a bit after the last coordinate is set");
    CHECK_THROWS_WITH(decode(bitmap, {1, 1}, 3), "rill: bitmap indices: 2 bits are set, expected 3");
    CHECK_THROWS_WITH(decode(packed_gaps, {33, 0}, 1), "rill: packed-gap indices: a width of 33 bits at number 0");
    CHECK_THROWS_WITH(decode(packed_gaps, {4, 0x1B}, 2),
                      "rill: packed-gap indices: number 1 lies outside of the universe");
    CHECK_THROWS_WITH(decode(packed_gaps, {3, 0x40}, 2),
                      "rill: packed-gap indices: a bit after the block at number 0 is set");
    CHECK_THROWS_WITH(decode(elias_fano, {0, 3, 0}, 2), "rill: Elias-Fano indices: 3 bytes, expected 2");
    CHECK_THROWS_WITH(decode(elias_fano, {16, 3}, 2), "rill: Elias-Fano indices: a bit after the low bits is set");
    CHECK_THROWS_WITH(decode(elias_fano, {0, 0x13}, 2), "rill: Elias-Fano indices: a bit after the last is set");
    CHECK_THROWS_WITH(decode(elias_fano, {0, 7}, 2),
                      "rill: Elias-Fano indices: 3 bits are set in the upper part, expected 2");
    CHECK_THROWS_WITH(decode(elias_fano, {7, 3}, 2),
                      "rill: Elias-Fano indices: number 1 is 2, expected one of [4, 12)");
    CHECK_THROWS_WITH(decode(elias_fano, {12, 9}, 2),
                      "rill: Elias-Fano indices: number 1 lies outside of the universe");
    const auto huffman_bytes = [](std::vector<unsigned> lengths, std::vector<unsigned> content) {
        std::vector<unsigned> bytes(24, 0);
        for (std::size_t s = 0; s < 3; ++s) bytes[8 * s] = lengths[s];
        bytes.insert(bytes.end(), content.begin(), content.end());
        return bytes;
    };
    // The code of the byte 00 is the bit 0.
    CHECK_THROWS_WITH(decode(huffman, {0, 0, 0}, 1),
                      "rill: Huffman-coded indices: 3 bytes cannot hold 1 of 12 coordinates");
    CHECK_THROWS_WITH(decode(huffman, huffman_bytes({1, 2, 0}, {0, 0}), 1),
                      "rill: Huffman-coded indices: stream 1 of 2 bytes, of which 1 are left");
    CHECK_THROWS_WITH(decode(huffman, huffman_bytes({1, 1, 1}, {0, 0, 0}), 1),
                      "rill: Huffman-coded indices: stream 2 has 1 bytes, and 0 bits are read");
    CHECK_THROWS_WITH(decode(huffman, huffman_bytes({1, 1, 0}, {0, 2}), 1),
                      "rill: Huffman-coded indices: a bit after stream 1 is set");
    CHECK_THROWS_WITH(decode(huffman, huffman_bytes({1, 1, 0}, {0, 0}), 1),
                      "rill: Huffman-coded indices: 0 bits are set, expected 1");
    const unsigned beyond = kernel::detail::byte_code(1, 12).code(std::byte{0x10});  // coordinate 12
    CHECK_THROWS_WITH(decode(huffman, huffman_bytes({1, 1, 0}, {0, beyond}), 1),
                      "rill: Huffman-coded indices: a bit after the last coordinate is set");
    CHECK_THROWS_WITH(decode(static_cast<rill::index_coding>(9), {}, 0), "rill: number 9 is no coding of indices");
}
