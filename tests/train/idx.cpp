#include "../support/allocations.hpp"
#include "../support/scratch.hpp"

#include <rill/train/idx.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <zlib.h>

using namespace rill;
using namespace rill::train;

namespace {

using bytes = std::vector<std::uint8_t>;

bytes idx(std::vector<std::uint32_t> dimensions, const bytes& values) {
    bytes file{0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
    for (std::uint32_t d : dimensions)
        for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::uint8_t>(d >> shift));
    file.insert(file.end(), values.begin(), values.end());
    return file;
}

bytes packed(const bytes& plain) {
    bytes out(plain.size() + 1024);
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = const_cast<Bytef*>(plain.data());
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

struct files {
    scratch_directory directory;

    std::string write(const char* name, const bytes& contents) const {
        return directory.write(name, std::as_bytes(std::span(contents)));
    }
    std::string error_of(const bytes& contents, std::size_t rank) const {
        const std::string path = write("broken", contents);
        const std::string message = message_of<data_error>([&] { read_idx(path, rank); });
        CHECK_MESSAGE(has(message, path), message);
        return message;
    }
};

bytes counting(std::size_t n) {
    bytes values(n);
    std::iota(values.begin(), values.end(), std::uint8_t{0});
    return values;
}

}  // namespace

TEST_CASE("idx: plain and gzip files give the same array") {
    const files here;
    const bytes file = idx({2, 3, 4}, counting(24));
    for (const bytes& form : {file, packed(file)}) {
        const idx_array array = read_idx(here.write("array", form), 3);
        CHECK(array.dimensions == std::vector<std::size_t>{2, 3, 4});
        CHECK(array.values == counting(24));
    }
}

TEST_CASE("idx: a gzip file may have several members") {
    const files here;
    const bytes file = idx({300}, counting(300));
    bytes first = packed({file.begin(), file.begin() + 100});
    const bytes second = packed({file.begin() + 100, file.end()});
    first.insert(first.end(), second.begin(), second.end());
    CHECK(read_idx(here.write("array", first), 1).values == counting(300));
}

TEST_CASE("idx: images and labels become a dataset") {
    const files here;
    const std::string images = here.write("images.gz", packed(idx({2, 1, 2}, {0, 255, 51, 102})));
    const std::string labels = here.write("labels", idx({2}, {1, 0}));
    const dataset data = read_idx_dataset(images, labels, 2);
    CHECK(data.rows == 2);
    CHECK(data.columns == 2);
    CHECK(data.classes == 2);
    CHECK(std::vector<float>(data.features.begin(), data.features.end()) ==
          std::vector<float>{0.0F, 1.0F, 51 / 255.0F, 102 / 255.0F});
    CHECK(data.row(1)[0] == 51 / 255.0F);
    CHECK(data.labels == std::vector<std::int32_t>{1, 0});

    const std::string wrong = message_of<data_error>([&] { read_idx_dataset(images, labels, 1); });
    CHECK_MESSAGE(has(wrong, labels + ": at byte 8: expected a label below 1, found 1"), wrong);
    const std::string more = here.write("three", idx({3}, {0, 0, 0}));
    const std::string differ = message_of<data_error>([&] { read_idx_dataset(images, more, 2); });
    CHECK_MESSAGE(has(differ, images + ": at byte 4: expected 3 images"), differ);
    CHECK_MESSAGE(has(differ, more + ", found 2"), differ);
}

TEST_CASE("idx: every part of the header is checked") {
    const files here;
    const bytes good = idx({2, 3}, counting(6));
    const auto changed = [&](std::size_t at, std::uint8_t to) {
        bytes file = good;
        file[at] = to;
        return file;
    };
    const auto says = [&](const bytes& file, const std::string& part) {
        const std::string message = here.error_of(file, 2);
        CHECK_MESSAGE(has(message, part), message);
    };
    says(changed(0, 7), "at byte 0: expected an IDX magic number that starts with 0, found 7");
    says(changed(1, 9), "at byte 1: expected an IDX magic number that goes on with 0, found 9");
    says(changed(2, 13), "at byte 2: expected element type (8 is unsigned byte) 8, found 13");
    says(changed(3, 3), "at byte 3: expected number of dimensions 2, found 3");
    says(changed(7, 0), "at byte 4: expected a dimension from 1 to 18 (by the file's size), found 0");
    says(changed(4, 0x7F), "at byte 4: expected a dimension from 1 to 18 (by the file's size), found 2130706434");
    says(changed(8, 0xFF), "at byte 8: expected a dimension from 1 to 9 (by the file's size), found 4278190083");
    says(changed(11, 4), "at byte 18: expected 2 more bytes of values, found the end of the data");
    says(changed(11, 2), "at byte 16: expected the end of the data, found more bytes");
}

TEST_CASE("idx: a file truncated at any byte, plain or compressed, is an error") {
    const files here;
    const bytes plain = idx({5, 7}, counting(35));
    for (const bytes& file : {plain, packed(plain)})
        for (std::size_t size = 0; size < file.size(); ++size) {
            CAPTURE(size);
            const std::string message = here.error_of({file.begin(), file.begin() + static_cast<long>(size)}, 2);
            CHECK_MESSAGE(has(message, "expected"), message);
        }
}

TEST_CASE("idx: overlong and damaged files are errors") {
    const files here;
    const bytes plain = idx({5, 7}, counting(35));
    bytes longer = plain;
    longer.push_back(0);
    CHECK(has(here.error_of(longer, 2), "at byte 47: expected the end of the data"));
    CHECK(has(here.error_of(packed(longer), 2), "at byte 47: expected the end of the data"));
    bytes trailing = packed(plain);
    trailing.push_back(1);
    CHECK_FALSE(here.error_of(trailing, 2).empty());
    bytes damaged = packed(plain);
    damaged[damaged.size() - 6] ^= 1;  // in the checksum
    CHECK(has(here.error_of(damaged, 2), "expected a valid gzip stream, found incorrect data check"));
}

TEST_CASE("idx: sizes in a header cost no memory; the content of a file costs at most four times its size") {
    const files here;
    bytes noise(40'000);  // incompressible: the file might otherwise unpack to 40 MB
    std::uint32_t state = 1;
    for (std::uint8_t& x : noise) x = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
    const std::uint32_t rows = 100, columns = 300'000;
    for (const bytes& file : {packed(idx({rows, columns}, noise)), packed(idx({200, 200}, noise))}) {
        const std::string path = here.write("promising", file);
        const auto before = allocated_bytes();
        const std::string message = message_of<data_error>([&] { read_idx(path, 2); });
        CHECK(has(message, "more bytes of values") == (file.size() > 0 && !message.empty()));
        constexpr std::size_t buffers = 200'000;
        CHECK(allocated_bytes() - before <= 4 * noise.size() + buffers);
    }
}

TEST_CASE("idx: a file that cannot be opened or read is an error with the reason") {
    const files here;
    const std::string missing = message_of<data_error>([&] { read_idx(here.directory / "none", 1); });
    CHECK_MESSAGE(has(missing, (here.directory / "none") + ": cannot be opened: No such file"), missing);
    const std::string directory = message_of<data_error>([&] { read_idx(here.directory / "", 1); });
    CHECK_MESSAGE(has(directory, "cannot be read: Is a directory"), directory);
}

TEST_CASE("idx: Fashion-MNIST, where it is installed") {
    const std::string directory = "/usr/share/datasets/fashion-mnist/";
    if (!std::filesystem::exists(directory)) return;
    const dataset data =
        read_idx_dataset(directory + "t10k-images-idx3-ubyte.gz", directory + "t10k-labels-idx1-ubyte.gz", 10);
    CHECK(data.rows == 10000);
    CHECK(data.columns == 784);
    std::vector<int> count(10);
    for (std::int32_t label : data.labels) ++count[static_cast<std::size_t>(label)];
    CHECK(count == std::vector<int>(10, 1000));
    const double sum = std::accumulate(data.features.begin(), data.features.end(), 0.0);
    CHECK(sum / static_cast<double>(data.features.size()) == doctest::Approx(0.2868).epsilon(1e-3));
}
