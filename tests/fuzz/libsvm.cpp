// Text in LIBSVM's format, plain and gzip: arbitrary bytes are sound rows or a `data_error`. A packed file reads like
// the plain one, and the parts of several ranks are the rows of one.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/memory_file.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/train/libsvm.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <zlib.h>

namespace {

using namespace rill;
using rill::fuzz::allocation_budget;
using rill::fuzz::memory_file;

/// Memory of the sources of a file, one for its size, one for its lines and one for the number of a wrong one: the
/// window and state of zlib, its buffer and that of the lines; and error texts.
constexpr std::size_t per_file = 3 * (5 * (std::size_t{1} << 16) + rill::fuzz::error_texts);

struct outcome {
    train::sparse_dataset data;
    std::string error;
};

/// Reads `content` bytes of text. A row of two bytes takes 12 bytes, an entry of two takes 8; vectors, and the buffer
/// of the lines, grow by copying to at most twice their size.
outcome read(const std::string& path, std::size_t content, rank_t rank, int size,
             const train::libsvm_options& options) {
    const allocation_budget at_most(per_file + 64 * content);
    try {
        return {train::read_libsvm(path, rank, size, options), {}};
    } catch (const train::data_error& error) {
        return {{}, error.what()};
    }
}

buffer packed(byte_view bytes) {
    buffer out(bytes.size() + bytes.size() / 100 + 64);
    z_stream stream{};
    RILL_FUZZ_REQUIRE(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    RILL_FUZZ_REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END, "room for what does not pack");
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

void require_sound(const train::sparse_dataset& data, const train::libsvm_options& options) {
    RILL_FUZZ_REQUIRE(data.labels.size() == data.rows && data.starts.size() == data.rows + 1, "a label for each row");
    RILL_FUZZ_REQUIRE(data.starts.front() == 0 && data.starts.back() == data.indices.size(), "rows of all entries");
    RILL_FUZZ_REQUIRE(data.values.empty() || data.values.size() == data.indices.size(), "a value for each entry");
    RILL_FUZZ_REQUIRE(options.columns == 0 || data.columns == options.columns, "the columns that were given");
    for (std::size_t r = 0; r < data.rows; ++r) {
        RILL_FUZZ_REQUIRE(data.starts[r] <= data.starts[r + 1], "rows one after the other");
        const train::sparse_row row = data.row(r);
        RILL_FUZZ_REQUIRE(std::isfinite(data.labels[r]), "finite labels");
        for (std::size_t i = 0; i < row.size(); ++i) {
            RILL_FUZZ_REQUIRE(row.columns[i] < data.columns, "columns of the dataset");
            RILL_FUZZ_REQUIRE(i == 0 || row.columns[i - 1] < row.columns[i], "ascending columns");
            RILL_FUZZ_REQUIRE(std::isfinite(row.value(i)), "finite values");
        }
    }
}

bool is_same(const train::sparse_dataset& a, const train::sparse_dataset& b) {
    if (a.rows != b.rows || a.labels != b.labels || a.starts != b.starts || a.indices != b.indices) return false;
    for (std::size_t r = 0; r < a.rows; ++r)
        for (std::size_t i = 0; i < a.row(r).size(); ++i)
            if (a.row(r).value(i) != b.row(r).value(i)) return false;
    return true;
}

void append(train::sparse_dataset& to, const train::sparse_dataset& part) {
    for (std::size_t r = 0; r < part.rows; ++r) {
        const train::sparse_row row = part.row(r);
        to.indices.insert(to.indices.end(), row.columns.begin(), row.columns.end());
        for (std::size_t i = 0; i < row.size(); ++i) to.values.push_back(row.value(i));
        to.starts.push_back(to.indices.size());
    }
    to.labels.insert(to.labels.end(), part.labels.begin(), part.labels.end());
    to.rows += part.rows;
}

void check_ranks(const std::string& path, std::size_t content, const train::libsvm_options& options,
                 const outcome& whole) {
    for (const int size : {2, 3}) {
        outcome joined;
        for (rank_t rank = 0; rank < size && joined.error.empty(); ++rank) {
            outcome part = read(path, content, rank, size, options);
            append(joined.data, part.data);
            joined.error = part.error;
        }
        RILL_FUZZ_REQUIRE(joined.error == whole.error, "the ranks find the first error that one rank finds");
        if (whole.error.empty())
            RILL_FUZZ_REQUIRE(is_same(joined.data, whole.data), "the ranks have all rows, in order");
    }
}

}  // namespace

RILL_FUZZ_TARGET(libsvm)(const std::uint8_t* data, std::size_t size) {
    static memory_file file;
    rill::fuzz::input in(data, size);
    const bool is_compared = in.flag();
    const train::libsvm_options options{.columns = in.number<std::uint16_t>(), .first_index = in.below(2)};
    const byte_view bytes = in.rest();
    const bool is_packed = bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
    if (is_packed && bytes.size() > 512) return 0;  // may unpack to a thousand times as much, which this counts by hand
    const std::size_t content = is_packed ? bytes.size() * 1032 : bytes.size();
    const std::string path = file.write(bytes).path();
    const outcome whole = read(path, content, 0, 1, options);
    if (whole.error.empty()) require_sound(whole.data, options);
    if (!is_compared || is_packed) return 0;  // of a damaged packed file each rank tells, wherever its own lines are
    check_ranks(path, content, options, whole);
    file.write(packed(bytes));
    const outcome unpacked = read(path, content, 0, 1, options);
    RILL_FUZZ_REQUIRE(unpacked.error == whole.error, "packed and plain files have the same error");
    if (whole.error.empty())
        RILL_FUZZ_REQUIRE(is_same(unpacked.data, whole.data), "packed and plain files hold the same");
    check_ranks(path, content, options, whole);
    return 0;
}
