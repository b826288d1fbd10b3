// IDX files, plain and gzip: arbitrary bytes are an array that fits their dimensions, or a `data_error`. A file that is
// packed here reads like the plain one, with the same errors.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/memory_file.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/train/idx.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include <zlib.h>

namespace {

using namespace rill;
using rill::fuzz::allocation_budget;
using rill::fuzz::memory_file;

/// Memory of zlib's window and state, the buffers of the gzip_source and of the stream, and error texts.
constexpr std::size_t per_file = (std::size_t{1} << 17) + (std::size_t{1} << 16) + 3 * rill::fuzz::error_texts;

using outcome = std::optional<train::idx_array>;

/// Reads `bytes` as a file; `content` is the number of its bytes when unpacked.
outcome read(memory_file& file, byte_view bytes, std::size_t rank, std::size_t content) {
    file.write(bytes);
    const std::string path = file.path();
    // The values grow with the bytes that were unpacked so far, by copying, to at most twice their size.
    const allocation_budget at_most(per_file + 4 * content);
    try {
        return train::read_idx(path, rank);
    } catch (const train::data_error&) {
        return std::nullopt;
    }
}

buffer packed(byte_view bytes, int level) {
    buffer out(bytes.size() + bytes.size() / 100 + 64);
    z_stream stream{};
    RILL_FUZZ_REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    RILL_FUZZ_REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END, "room for what does not pack");
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

bool is_gzip(byte_view bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

/// The number of bytes that a gzip file unpacks to, up to where it is damaged.
std::size_t unpacked_size(byte_view bytes) {
    z_stream stream{};
    RILL_FUZZ_REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK, "zlib");
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::size_t size = 0;
    Bytef room[4096];
    for (int status = Z_OK; status == Z_OK || status == Z_STREAM_END;) {
        if (status == Z_STREAM_END) inflateReset(&stream);
        stream.next_out = room;
        stream.avail_out = sizeof room;
        status = inflate(&stream, Z_NO_FLUSH);
        size += sizeof room - stream.avail_out;
    }
    inflateEnd(&stream);
    return size;
}

void require_sound(const train::idx_array& array, std::size_t rank, byte_view plain) {
    RILL_FUZZ_REQUIRE(array.dimensions.size() == rank, "as many dimensions as asked for");
    std::size_t product = 1;
    for (const std::size_t d : array.dimensions) {
        RILL_FUZZ_REQUIRE(d > 0, "no dimension of nothing");
        product *= d;
    }
    RILL_FUZZ_REQUIRE(array.values.size() == product, "a value for each position");
    if (plain.empty()) return;
    RILL_FUZZ_REQUIRE(plain.size() == 4 + 4 * rank + product, "all of the file");
    RILL_FUZZ_REQUIRE(std::memcmp(array.values.data(), plain.data() + 4 + 4 * rank, product) == 0, "the file's values");
}

void check_array(memory_file& file, byte_view bytes, std::size_t rank, unsigned packing) {
    const bool is_packed = is_gzip(bytes);
    const outcome plain = read(file, bytes, rank, is_packed ? unpacked_size(bytes) : bytes.size());
    if (plain) require_sound(*plain, rank, is_packed ? byte_view{} : bytes);
    if (packing == 0 || is_packed) return;
    const std::size_t cut = packing % 4 * bytes.size() / 4;
    buffer members = packed(bytes.first(cut), 1);
    const buffer second = packed(bytes.subspan(cut), 6);
    members.append(second.begin(), second.end());
    const outcome unpacked = read(file, members, rank, bytes.size());
    RILL_FUZZ_REQUIRE(plain.has_value() == unpacked.has_value(), "packed and plain files are accepted alike");
    if (plain)
        RILL_FUZZ_REQUIRE(plain->dimensions == unpacked->dimensions && plain->values == unpacked->values,
                          "packed and plain files hold the same");
}

void check_dataset(memory_file& images, memory_file& labels, rill::fuzz::input in) {
    const int classes = 1 + static_cast<int>(in.below(12));
    const byte_view label_bytes = in.bytes(in.number<std::uint8_t>()), image_bytes = in.rest();
    labels.write(label_bytes);
    images.write(image_bytes);
    const auto content = [](byte_view bytes) { return is_gzip(bytes) ? unpacked_size(bytes) : bytes.size(); };
    const std::string images_path = images.path(), labels_path = labels.path();
    try {
        const allocation_budget at_most(2 * per_file + 8 * (content(label_bytes) + content(image_bytes)));
        const train::dataset data = train::read_idx_dataset(images_path, labels_path, classes);
        RILL_FUZZ_REQUIRE(data.labels.size() == data.rows, "a label for each row");
        RILL_FUZZ_REQUIRE(data.features.size() == data.rows * data.columns, "a feature for each pixel");
        for (const std::int32_t label : data.labels) RILL_FUZZ_REQUIRE(0 <= label && label < classes, "known classes");
        for (const float x : data.features) RILL_FUZZ_REQUIRE(0 <= x && x <= 1, "scaled features");
    } catch (const train::data_error&) {
    }
}

}  // namespace

RILL_FUZZ_TARGET(idx)(const std::uint8_t* data, std::size_t size) {
    static memory_file first, second;
    rill::fuzz::input in(data, size);
    const unsigned rank = in.below(5), packing = in.below(5);
    if (rank == 4)
        check_dataset(first, second, in);
    else
        check_array(first, in.rest(), rank, packing);
    return 0;
}
