// The IDX format of the MNIST family of data sets: two zero bytes, a type, the number of dimensions, the dimensions as
// big-endian 32-bit integers, then the values.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/gzip_source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The contents of an IDX file of unsigned bytes; the last dimension varies fastest.
struct idx_array {
    std::vector<std::size_t> dimensions;
    std::vector<std::uint8_t> values;
};

namespace detail {

inline void read_exactly(gzip_source& source, byte_span out, const char* what) {
    const std::uint64_t begin = source.offset();
    const std::size_t got = source.read(out);
    if (got < out.size())
        throw data_error(source.path(), begin + got, std::to_string(out.size() - got) + " more bytes of " + what,
                         "the end of the data");
}

inline void read_idx_magic(gzip_source& source, std::size_t rank) {
    std::uint8_t magic[4];
    read_exactly(source, std::as_writable_bytes(std::span(magic)), "the IDX magic number");
    const auto require = [&](std::uint64_t at, std::size_t expected, const char* what) {
        if (magic[at] != expected)
            throw data_error(source.path(), at, what + (" " + std::to_string(expected)), std::to_string(magic[at]));
    };
    require(0, 0, "an IDX magic number that starts with");
    require(1, 0, "an IDX magic number that goes on with");
    require(2, 8, "element type (8 is unsigned byte)");
    require(3, rank, "number of dimensions");
}

inline std::size_t read_idx_dimension(gzip_source& source, std::uint64_t most) {
    const std::uint64_t at = source.offset();
    std::uint8_t b[4];
    read_exactly(source, std::as_writable_bytes(std::span(b)), "a dimension");
    const std::size_t size = std::size_t{b[0]} << 24 | std::size_t{b[1]} << 16 | std::size_t{b[2]} << 8 | b[3];
    if (size == 0 || size > most)
        throw data_error(source.path(), at, "a dimension from 1 to " + std::to_string(most) + " (by the file's size)",
                         std::to_string(size));
    return size;
}

}  // namespace detail

/// Reads an IDX file of unsigned bytes with `rank` dimensions, plain or gzip, and validates all of it.
///
/// Memory is bounded by the unpacked size of the file, even if its header claims more. Throws `data_error`.
inline idx_array read_idx(const std::string& path, std::size_t rank) {
    gzip_source source(path);
    detail::read_idx_magic(source, rank);
    idx_array array;
    std::uint64_t total = 1;
    const std::uint64_t capacity = source.capacity();
    for (std::size_t d = 0; d < rank; ++d) {
        array.dimensions.push_back(detail::read_idx_dimension(source, capacity / total));
        total *= array.dimensions.back();
    }
    constexpr std::size_t least_room = std::size_t{1} << 16;
    while (array.values.size() < total) {
        const std::size_t done = array.values.size();
        const std::size_t room = std::min<std::size_t>(total, std::max(least_room, 2 * done));
        array.values.reserve(room);  // resize alone might reserve twice as much
        array.values.resize(room);
        detail::read_exactly(source, std::as_writable_bytes(std::span(array.values).subspan(done)), "values");
    }
    std::byte beyond{};
    const std::uint64_t end = source.offset();
    if (source.read({&beyond, 1}) != 0) throw data_error(path, end, "the end of the data", "more bytes");
    return array;
}

/// Images (rank 3, scaled to `[0, 1]`) with their labels (rank 1, each below `classes`). Throws `data_error`.
inline dataset read_idx_dataset(const std::string& images_path, const std::string& labels_path, int classes) {
    RILL_EXPECTS(classes > 0, "read_idx_dataset: at least one class");
    const idx_array labels = read_idx(labels_path, 1);
    const std::size_t rows = labels.dimensions[0];
    const auto wrong = std::find_if(labels.values.begin(), labels.values.end(), [&](int c) { return c >= classes; });
    if (wrong != labels.values.end())
        throw data_error(labels_path, 8 + static_cast<std::uint64_t>(wrong - labels.values.begin()),
                         "a label below " + std::to_string(classes), std::to_string(*wrong));
    const idx_array images = read_idx(images_path, 3);
    if (images.dimensions[0] != rows)
        throw data_error(images_path, 4, std::to_string(rows) + " images, as there are labels in " + labels_path,
                         std::to_string(images.dimensions[0]));

    dataset data{.rows = rows,
                 .columns = images.dimensions[1] * images.dimensions[2],
                 .classes = classes,
                 .features = aligned_vector<float>(images.values.size()),
                 .labels = {labels.values.begin(), labels.values.end()}};
    std::transform(images.values.begin(), images.values.end(), data.features.begin(),
                   [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
    return data;
}

}}}  // namespace rill::RILL_ABI::train
