#include <rill/stream/frame.hpp>

#include "frames.hpp"
#include "samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace rill;
using namespace rill::stream_tests;

namespace {

constexpr value_coding value_codings[] = {value_coding::raw, value_coding::bf16, value_coding::qsgd2,
                                          value_coding::qsgd4, value_coding::qsgd8};

/// The largest error of one value: half a unit of 8 bits for bfloat16, one level for QSGD.
template <class T>
double tolerance(const coding& codes, T value, double largest) {
    if (codes.values == value_coding::raw) return 0;
    if (codes.values == value_coding::bf16) return std::abs(static_cast<double>(value)) / 256;
    return largest / ((1 << (qsgd_bits(codes.values) - 1)) - 1);
}

template <class T, class Index>
void check_same(const stream_view<T, Index>& read, const stream_view<T, Index>& sent, const coding& codes) {
    CHECK(read.range() == sent.range());
    CHECK(read.is_dense() == sent.is_dense());
    CHECK(std::ranges::equal(read.indices(), sent.indices()));
    REQUIRE(read.count() == sent.count());
    double largest = 0;
    for (T value : sent.values()) largest = std::max(largest, std::abs(static_cast<double>(value)));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < sent.count(); ++i) {
        const double error = std::abs(static_cast<double>(read.values()[i]) - static_cast<double>(sent.values()[i]));
        if (!(error <= tolerance(codes, sent.values()[i], largest))) ++wrong;
    }
    CHECK(wrong == 0);
}

template <class T, class Index>
void check_round_trip(const stream<T, Index>& s, const coding& codes) {
    CAPTURE(static_cast<int>(codes.values));
    CAPTURE(static_cast<int>(codes.indices));
    CAPTURE(s.count());
    arena memory;
    frame_scratch<T, Index> room;
    const wire::header head = frame_header_of(s.range().end);
    const byte_view bytes = coded_frame(head, s.view(), codes, random_key{1}, memory);
    frame_reader reader{byte_pieces(bytes)};
    CHECK(reader.peek().count == s.count());
    const frame f = reader.next<T, Index>();
    CHECK(reader.done());
    CHECK(f.bytes.size_bytes() == bytes.size());
    CHECK(f.head.number == 4);
    CHECK(f.head.codes.indices != index_coding::smallest);
    check_same(content_of(f, room), s.view(), codes);
}

}  // namespace

TEST_CASE_TEMPLATE("frames of every coding read as they were written", Row, RILL_STREAM_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    for (segment range : {segment{0, 0}, segment{0, 1}, segment{0, 301}, segment{1000, 1513}})
        for (float density : {0.0F, 0.02F, 0.5F, 1.0F})
            for (std::uint64_t seed : {1U, 2U})
                for (value_coding values : value_codings) {
                    if (!std::is_floating_point_v<T> && !is_lossless(values)) continue;
                    const auto s = sample<T, Index>(range, density, seed);
                    for (index_coding indices : index_codings)
                        check_round_trip(s, {.values = values, .indices = indices, .bucket = 100});
                    check_round_trip(s, {.values = values, .indices = index_coding::smallest, .bucket = 100});
                }
}

TEST_CASE_TEMPLATE("a view frame is the stream's own memory after a header", Row, RILL_STREAM_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    for (float density : {0.0F, 0.3F, 1.0F}) {
        const auto s = sample<T, Index>({10, 77}, density, 3);
        alignas(64) wire::header_block block;
        const byte_pieces pieces = view_frame(frame_header_of(100), s.view(), block.data());
        CHECK(pieces[0].data() == block.data());
        for (byte_view piece : pieces) {
            const bool is_own = piece.data() == block.data() || piece.data() == std::as_bytes(s.values()).data() ||
                                piece.data() == std::as_bytes(s.indices()).data();
            CHECK(is_own);
        }
        frame_scratch<T, Index> room;
        frame_reader in_pieces(pieces);
        check_same(content_of(in_pieces.next<T, Index>(), room), s.view(), coding{});
        CHECK(in_pieces.done());
        const buffer whole = joined({pieces});
        frame_reader in_one{byte_pieces(whole)};
        const auto read = content_of(in_one.next<T, Index>(), room);
        check_same(read, s.view(), coding{});
        CHECK(room.values.empty());  // nothing was copied
        CHECK(room.indices.empty());
        // For a stream that could be sent as a view, the coded frame has the same bytes.
        arena memory;
        const byte_view coded = coded_frame(frame_header_of(100), s.view(), coding{}, random_key{}, memory);
        CHECK(std::ranges::equal(coded, whole));
    }
}

TEST_CASE("a message of several frames") {
    const auto a = sample<float, std::uint32_t>({0, 40}, 0.3F, 5);
    const auto b = sample<float, std::uint32_t>({40, 91}, 1, 6);
    const auto c = sample<float, std::uint32_t>({91, 100}, 0, 7);
    const coding codes{.values = value_coding::bf16, .indices = index_coding::bitmap};
    arena memory;
    wire::header_block block;
    const std::vector<byte_pieces> frames{
        byte_pieces(coded_frame(frame_header_of(100), a.view(), codes, random_key{}, memory)),
        view_frame(frame_header_of(100), b.view(), block.data()),
        byte_pieces(coded_frame(frame_header_of(100), c.view(), codes, random_key{}, memory))};
    REQUIRE(frames[0].size_bytes() % frame_alignment != 0);
    REQUIRE(frames[1].size_bytes() % frame_alignment != 0);
    buffer message = joined(frames);
    frame_scratch<float, std::uint32_t> room;

    frame_reader reader{byte_pieces(message)};
    check_same(content_of(reader.next<float, std::uint32_t>(), room), a.view(), codes);
    CHECK(reader.peek().range == b.range());
    CHECK(reader.peek().range == b.range());
    check_same(content_of(reader.next<float, std::uint32_t>(), room), b.view(), coding{});
    CHECK_FALSE(reader.done());
    check_same(content_of(reader.next<float, std::uint32_t>(), room), c.view(), codes);
    CHECK(reader.done());
    CHECK_THROWS_AS(reader.peek(), protocol_error);
    CHECK_THROWS_AS((reader.next<float, std::uint32_t>()), protocol_error);

    message[frames[0].size_bytes()] = std::byte{1};
    frame_reader padded{byte_pieces(message)};
    CHECK_THROWS_WITH((padded.next<float, std::uint32_t>()), "rill: invalid frame: padding is not zero");

    const byte_pieces with_empty = [&] {
        byte_pieces pieces;
        pieces.push({});
        for (byte_view piece : frames[1]) pieces.push(piece);
        pieces.push({});
        return pieces;
    }();
    frame_reader skipping(with_empty);
    check_same(content_of(skipping.next<float, std::uint32_t>(), room), b.view(), coding{});
    CHECK(skipping.done());
    CHECK(frame_reader{byte_pieces(byte_view{})}.done());
}

TEST_CASE("a frame of another element or index type than expected is refused") {
    const auto s = sample<float, std::uint32_t>({0, 40}, 0.3F, 5);
    wire::header_block block;
    const byte_pieces pieces = view_frame(frame_header_of(40), s.view(), block.data());
    CHECK_THROWS_WITH((frame_reader(pieces).next<std::int32_t, std::uint32_t>()),
                      "rill: invalid frame: another element type than was due");
    CHECK_THROWS_WITH((frame_reader(pieces).next<float, std::uint64_t>()),
                      "rill: invalid frame: another index width than was due");
}

TEST_CASE("arrays at unaligned addresses are refused where they would be read in place") {
    const auto s = sample<double, std::uint64_t>({0, 40}, 0.3F, 5);
    wire::header_block block;
    const buffer whole = joined({view_frame(frame_header_of(40), s.view(), block.data())});
    for (std::size_t shift = 1; shift < 8; ++shift) {
        buffer moved(whole.size() + shift);
        std::copy(whole.begin(), whole.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
        frame_reader reader{byte_pieces(byte_view(moved).subspan(shift))};
        const frame f = reader.next<double, std::uint64_t>();
        frame_scratch<double, std::uint64_t> room;
        CHECK_THROWS_WITH_AS(content_of(f, room), "rill: invalid frame: misaligned", protocol_error);
    }
}

TEST_CASE("a lossy coding refuses what is not finite and names the coordinate") {
    arena memory;
    for (value_coding values : {value_coding::bf16, value_coding::qsgd2, value_coding::qsgd8})
        for (float bad : {INFINITY, -INFINITY, NAN}) {
            stream<float> sparse(1000);
            sparse.push_back(7, 1.0F);
            sparse.push_back(812, bad);
            const coding codes{.values = values};
            CHECK_THROWS_WITH_AS(coded_frame(frame_header_of(1000), sparse.view(), codes, random_key{}, memory),
                                 "rill: coordinate 812 is not finite and cannot be rounded", invalid_value);
            stream<float> dense;
            dense.make_dense({500, 900})[3] = bad;
            std::fill_n(dense.values().begin(), 3, 0.0F);
            CHECK_THROWS_WITH_AS(coded_frame(frame_header_of(1000), dense.view(), codes, random_key{}, memory),
                                 "rill: coordinate 503 is not finite and cannot be rounded", invalid_value);
        }
    stream<std::int32_t> whole(10);
    CHECK_THROWS_AS(
        coded_frame(frame_header_of(10), whole.view(), {.values = value_coding::bf16}, random_key{}, memory),
        contract_violation);
}

TEST_CASE("a coding that is none of qsgd's, and one with empty buckets, are refused") {
    arena memory;
    stream<float> sparse(1000);
    sparse.push_back(7, 1.0F);
    for (const coding codes :
         {coding{.values = static_cast<value_coding>(16)}, coding{.values = value_coding::qsgd4, .bucket = 0}})
        CHECK_THROWS_AS(coded_frame(frame_header_of(1000), sparse.view(), codes, random_key{}, memory),
                        contract_violation);
}

TEST_CASE_TEMPLATE("a finite value that bfloat16 would round to infinity is refused", T, float, double) {
    arena memory;
    const coding codes{.values = value_coding::bf16};
    const T largest = static_cast<T>(sizeof(T) == 4 ? 0x1.FEFFFEp127 : std::nextafter(0x1.FFp127 - 0x1p103, 0.0));
    stream<T> s(1000);
    s.push_back(3, largest);
    s.push_back(4, -largest);
    frame_scratch<T, std::uint32_t> room;
    frame_reader reader{byte_pieces(coded_frame(frame_header_of(1000), s.view(), codes, random_key{}, memory))};
    const frame f = reader.next<T, std::uint32_t>();
    for (const T value : content_of(f, room).values()) CHECK(std::abs(value) == static_cast<T>(0x1.FEp127));
    const T infinite = std::numeric_limits<T>::infinity();
    for (const T beyond : {std::nextafter(largest, infinite), std::numeric_limits<T>::max()}) {
        s.clear({0, 1000});
        s.push_back(3, 1);
        s.push_back(40, -beyond);
        CHECK_THROWS_WITH_AS(coded_frame(frame_header_of(1000), s.view(), codes, random_key{}, memory),
                             "rill: coordinate 40 is too large for bfloat16", invalid_value);
    }
}

TEST_CASE("a set of codings is what is compiled: other frames are refused") {
    constexpr coding_set exact{.rounds = false, .indices = index_coding::raw};
    constexpr coding_set rounded{.rounds = true, .indices = index_coding::elias_fano};
    stream<float> s(64);
    s.push_back(3, 1.5F);
    s.push_back(40, -2.0F);
    const auto read = [&]<coding_set Among>(const coding& codes) {
        arena memory;
        frame_scratch<float, std::uint32_t> room;
        const byte_view bytes = coded_frame(frame_header_of(64), s.view(), codes, random_key{1}, memory);
        const frame f = frame_reader{byte_pieces(bytes)}.next<float, std::uint32_t>();
        return content_of<Among>(f, room).count();
    };
    const coding gaps{.indices = index_coding::packed_gaps}, elias_fano{.indices = index_coding::elias_fano};
    const coding bf16{.values = value_coding::bf16};
    CHECK(read.operator()<exact>({}) == 2);
    CHECK(read.operator()<rounded>({}) == 2);
    CHECK(read.operator()<rounded>(elias_fano) == 2);
    CHECK(read.operator()<rounded>(bf16) == 2);
    CHECK_THROWS_WITH_AS(read.operator()<exact>(bf16), "rill: invalid frame: rounded values where exact ones were due",
                         protocol_error);
    for (const coding& codes : {gaps, elias_fano})
        CHECK_THROWS_WITH_AS(read.operator()<exact>(codes),
                             (codes == gaps ? "rill: number 2 is a coding of indices that was not due"
                                            : "rill: number 4 is a coding of indices that was not due"),
                             protocol_error);
    CHECK_THROWS_AS(read.operator()<rounded>(gaps), protocol_error);
}
