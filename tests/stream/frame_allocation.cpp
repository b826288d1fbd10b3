// Decoding a frame allocates memory in proportion to the bytes received, not to the sizes that the frame announces.
#include <rill/stream/frame.hpp>

#include "../support/allocations.hpp"
#include "frames.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::stream_tests;

namespace {

/// A value takes at least two bits and its index a 128th of a byte; each becomes at most eight bytes.
constexpr std::size_t bytes_per_byte = 64;
constexpr std::size_t error_texts = 4096;

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t counts[] = {1,        3,   255, 256, 257, 4000, std::uint64_t{1} << 32, std::uint64_t{1} << 62,
                                    huge / 8, huge};

buffer message_of(const wire::header& head, std::size_t payload) {
    buffer message(wire::header_bytes + payload, std::byte{0});
    wire::encode(head, message.data());
    return message;
}

/// By how much reading `message` exceeds its bound of allocated bytes.
template <class T, class Index>
std::string excess(const buffer& message) {
    frame_scratch<T, Index> room;
    const auto before = allocated_bytes();
    try {
        for (frame_reader reader{byte_pieces(message)}; !reader.done();) content_of(reader.next<T, Index>(), room);
    } catch (const protocol_error&) {
    }
    const std::size_t kept = room.indices.capacity() * sizeof(Index) + room.values.capacity() * sizeof(T);
    const std::size_t used = std::max<std::size_t>(kept, allocated_bytes() - before);
    const std::size_t most = bytes_per_byte * (message.size() - wire::header_bytes);
    if (kept <= most && used <= most + error_texts) return "";
    return std::to_string(used) + " bytes for " + std::to_string(message.size()) + "; ";
}

template <class T, class Index>
void check_headers() {
    std::string found;
    std::size_t tried = 0;
    for (const value_coding values : {value_coding::raw, value_coding::bf16, value_coding::qsgd2, value_coding::qsgd8})
        for (unsigned number = 0; number <= static_cast<unsigned>(index_codings.back()); ++number)
            for (const std::uint32_t bucket : {1U, 1024U, 0xFFFFFFFFU})
                for (const std::uint64_t count : counts)
                    for (const std::uint64_t length :
                         {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{32}, count, huge}) {
                        wire::header head = frame_header_of(sizeof(Index) == 4 ? std::size_t{1} << 32 : huge);
                        head.element = element_type_of<T>;
                        head.index_bytes = sizeof(Index);
                        const auto indices = static_cast<index_coding>(number);
                        head.codes = {.values = values,
                                      .indices = indices,
                                      .bucket = bucket,
                                      .row = static_cast<std::uint16_t>(bucket)};
                        head.range = {0, indices == index_coding::dense ? count : head.dimension};
                        head.count = count;
                        head.index_length = length;
                        found += excess<T, Index>(message_of(head, 64));
                        head.range.end = 8 * length < head.dimension ? 8 * length : head.dimension;
                        found += excess<T, Index>(message_of(head, 64));
                        ++tried;
                    }
    CHECK(tried > 2000);
    CHECK(found == "");
}

}  // namespace

TEST_CASE("headers that announce more than was received") {
    check_headers<float, std::uint32_t>();
    check_headers<double, std::uint64_t>();
}

TEST_CASE("the frame that grows most stays below its bound") {
    stream<double, std::uint64_t> s;
    s.make_dense({0, 512});
    const auto room = s.make_sparse({0, 512}, 512);
    for (std::size_t i = 0; i < 512; ++i) {
        room.indices[i] = i;
        room.values[i] = 1;
    }
    arena memory;
    const coding codes{.values = value_coding::qsgd2, .indices = index_coding::packed_gaps, .bucket = 0xFFFFFFFF};
    const byte_view bytes = coded_frame(frame_header_of(512), s.view(), codes, random_key{}, memory);
    const std::size_t payload = bytes.size() - wire::header_bytes;
    CHECK(payload == 512 / 4 + sizeof(double) + 512 / 128);
    CHECK(512 * (sizeof(double) + sizeof(std::uint64_t)) > 58 * payload);
    CHECK(excess<double, std::uint64_t>(buffer(bytes.begin(), bytes.end())) == "");
}
