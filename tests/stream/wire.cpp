// Golden bytes: within a version of the format, frames must never change, because other builds and machines read them.
#include <rill/stream/wire.hpp>

#include "frames.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace rill;
using namespace rill::stream_tests;

namespace {

std::string hex(byte_view bytes) {
    std::string text;
    for (std::byte b : bytes) {
        constexpr const char* digits = "0123456789abcdef";
        text += digits[std::to_integer<unsigned>(b) >> 4];
        text += digits[std::to_integer<unsigned>(b) & 15];
    }
    return text;
}

wire::header golden_head() {
    return {.kind = operation::all_reduce,
            .epoch = 0x01020304,
            .context = 0x1112131415161718,
            .number = 0x2122232425262728,
            .call = 0x31323334,
            .age = 2,
            .dimension = 1000,
            .weight = 1.5,
            .contributors = 3};
}

template <class T, class Index>
std::string frame_hex(const stream<T, Index>& s, const coding& codes) {
    arena memory;
    return hex(coded_frame(golden_head(), s.view(), codes, random_key{9}, memory));
}

stream<float> sparse_sample() {
    stream<float> s;
    s.clear({256, 288});
    for (std::size_t i : {257U, 260U, 261U, 270U, 287U}) s.push_back(i, static_cast<float>(i % 7) - 2.75F);
    return s;
}

}  // namespace

TEST_CASE("golden bytes of a dense frame") {
    stream<double> s;
    const auto values = s.make_dense({512, 514});
    values[0] = 1;
    values[1] = -0.1;
    CHECK(frame_hex(s, {}) ==
          "72696c6c01020204000000000403020118171615141312112827262524232221"
          "3433323102000000e80300000000000000020000000000000202000000000000"
          "02000000000000000000000000000000000000000000f83f0300000000040000"
          "000000000000f03f9a9999999999b9bf");
}

TEST_CASE("a frame of a protocol says which one, and that protocol's own number") {
    constexpr message_kind kind{"rounds", 3};
    static_assert(kind != message_kind("gossip", 3) && kind != message_kind("rounds", 4));
    static_assert(kind.protocol != message_kind(operation::all_reduce).protocol);
    wire::header head = golden_head();
    head.element = element_type::int32;
    head.index_bytes = 4;
    head.kind = kind;
    wire::header_block block;
    wire::encode(head, block.data());
    CHECK(hex(byte_view(block).first(12)) == "72696c6c0103030400016420");
    CHECK(wire::decode(block.data()).kind == kind);
}

TEST_CASE("golden bytes of a raw sparse frame") {
    CHECK(frame_hex(sparse_sample(), {}) ==
          "72696c6c01020104000100000403020118171615141312112827262524232221"
          "3433323102000000e80300000000000000010000000000002001000000000000"
          "05000000000000001400000000000000000000000000f83f0300000000040000"
          "000010400000e0bf000040bf0000a03f000030c00101000004010000050100000e0100001f010000");
}

TEST_CASE("golden bytes of packed gaps with 4-bit values") {
    CHECK(frame_hex(sparse_sample(),
                    {.values = value_coding::qsgd4, .indices = index_coding::packed_gaps, .bucket = 4}) ==
          "72696c6c01020104040200000403020118171615141312112827262524232221"
          "3433323102000000e80300000000000000010000000000002001000000000000"
          "05000000000000000500000000000000000000000000f83f0300000004000000"
          "00001040000030405eb2000541000401");
}

TEST_CASE("golden bytes of a bitmap with bfloat16 values") {
    CHECK(frame_hex(sparse_sample(), {.values = value_coding::bf16, .indices = index_coding::bitmap}) ==
          "72696c6c01020104010300000403020118171615141312112827262524232221"
          "3433323102000000e80300000000000000010000000000002001000000000000"
          "05000000000000000400000000000000000000000000f83f0300000000040000"
          "1040e0bf40bfa03f30c032400080");
}

TEST_CASE("golden bytes of Elias-Fano") {
    CHECK(frame_hex(sparse_sample(), {.indices = index_coding::elias_fano}) ==
          "72696c6c01020104000400000403020118171615141312112827262524232221"
          "3433323102000000e80300000000000000010000000000002001000000000000"
          "05000000000000000400000000000000000000000000f83f0300000000040000"
          "000010400000e0bf000040bf0000a03f000030c0fd032704");
}

TEST_CASE("golden bytes of whole rows: a header that says how many entries share an index") {
    stream<float> rows;
    rows.clear({256, 288});
    for (const std::size_t i : {256U, 257U, 270U, 271U, 272U}) rows.push_back(i, 1.0F);  // the range cuts the first row
    CHECK(frame_hex(rows, {.indices = index_coding::whole_rows, .row = 3}) ==
          "72696c6c01020104000600000403020118171615141312112827262524232221"
          "3433323102000000e80300000000000000010000000000002001000000000000"
          "05000000000000000a00000000000300000000000000f83f0300000000040000"
          "0000803f0000803f0000803f0000803f0000803f02000000000000000005");
}

TEST_CASE("a header is read as it was written") {
    wire::header head = golden_head();
    head.element = element_type::float64;
    head.index_bytes = 8;
    head.codes = {.values = value_coding::qsgd8, .indices = index_coding::bitmap, .bucket = 77};
    head.range = {10, 990};
    head.count = 500;
    head.index_length = 123;
    wire::header_block block;
    wire::encode(head, block.data());
    CHECK(wire::decode(block.data()) == head);
    head.codes = {.indices = index_coding::whole_rows, .row = 65535};
    wire::encode(head, block.data());
    CHECK(wire::decode(block.data()) == head);
}

TEST_CASE("an invalid header is refused with its reason") {
    const auto refusal = [](auto change) {
        wire::header head = golden_head();
        head.element = element_type::float32;
        head.index_bytes = 4;
        head.codes.indices = index_coding::raw;
        head.range = {0, 10};
        head.count = 3;
        change(head);
        wire::header_block block;
        wire::encode(head, block.data());
        try {
            wire::decode(block.data());
        } catch (const protocol_error& e) {
            return std::string(e.what());
        }
        return std::string("accepted");
    };
    CHECK(refusal([](wire::header&) {}) == "accepted");
    const std::string prefix = "rill: invalid frame: ";
    CHECK(refusal([](auto& h) { h.kind = operation::none; }) == prefix + "unknown operation");
    CHECK(refusal([](auto& h) { h.kind = static_cast<operation>(200); }) == prefix + "unknown operation");
    CHECK(refusal([](auto& h) { h.kind = operation::departure; }) == prefix + "unknown operation");
    CHECK(refusal([](auto& h) { h.kind = {"gossip", 0}; }) == prefix + "unknown operation");
    CHECK(refusal([](auto& h) { h.kind = {"gossip", 200}; }) == "accepted");
    CHECK(refusal([](auto& h) { h.element = element_type::none; }) == prefix + "unknown element type");
    CHECK(refusal([](auto& h) { h.index_bytes = 5; }) == prefix + "unknown index width");
    CHECK(refusal([](auto& h) { h.codes.values = static_cast<value_coding>(3); }) == prefix + "unknown value coding");
    CHECK(refusal([](auto& h) { h.codes.indices = index_coding::smallest; }) == prefix + "unknown index coding");
    CHECK(refusal([](auto& h) { h.codes.bucket = 0; }) == prefix + "empty quantiser buckets");
    CHECK(refusal([](auto& h) {
              h.element = element_type::int32;
              h.codes.values = value_coding::bf16;
          }) == prefix + "lossy coding of integers");
    CHECK(refusal([](auto& h) { h.range = {5, 4}; }) == prefix + "range outside the dimension");
    CHECK(refusal([](auto& h) { h.range = {5, 1001}; }) == prefix + "range outside the dimension");
    CHECK(refusal([](auto& h) { h.count = 11; }) == prefix + "more entries than coordinates");
    CHECK(refusal([](auto& h) { h.codes.indices = index_coding::dense; }) ==
          prefix + "a dense frame has every coordinate and no index");
    CHECK(refusal([](auto& h) { h.dimension = (std::uint64_t{1} << 32) + 1; }) ==
          prefix + "dimension beyond the index type");
    for (double weight : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
        CHECK(refusal([&](auto& h) { h.weight = weight; }) == prefix + "weight is not a finite non-negative number");
}
