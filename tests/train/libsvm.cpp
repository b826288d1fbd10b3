#include <rill/train/libsvm.hpp>

#include "../support/scratch.hpp"

#include <rill/train/minibatches.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

using namespace rill;
using namespace rill::train;

namespace {

std::string gzip_of(std::string_view plain) {
    std::string out(plain.size() + 1024, '\0');
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

struct text_files {
    scratch_directory directory;

    std::string write(std::string_view contents) const {
        return directory.write("samples", std::as_bytes(std::span(contents)));
    }
    /// The message for a file, without the path.
    std::string error_of(std::string_view contents, libsvm_options options = {}, rank_t rank = 0, int size = 1) const {
        const std::string path = write(contents);
        const std::string message = message_of<data_error>([&] { read_libsvm(path, rank, size, options); });
        const std::string head = "rill: " + path + ": ";
        CHECK_MESSAGE(message.substr(0, head.size()) == head, message);
        return message.substr(std::min(head.size(), message.size()));
    }
};

using column_list = std::vector<std::uint32_t>;

column_list columns_of(const sparse_row& row) { return {row.columns.begin(), row.columns.end()}; }

/// Lines of different lengths, empty ones and comments among them, that are numbered by their labels.
std::string numbered_lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        if (i % 7 == 3) text += "\n";
        if (i % 5 == 2) text += "# between\n";
        text += std::to_string(i);
        for (int c = 1; c <= i % 4; ++c) text += " " + std::to_string(c * 10 + i) + ":0.5";
        text += i % 2 == 0 ? "\n" : "\r\n";
    }
    return text;
}

}  // namespace

TEST_CASE("libsvm: labels, columns and values") {
    const text_files here;
    const sparse_dataset data = read_libsvm(here.write("+1 1:0.5 4:-2e1\n\n# none\n-1\t2:1 # the rest\n0 3 4:7"));
    CHECK(data.rows == 3);
    CHECK(data.columns == 4);
    CHECK(data.labels == std::vector<float>{1, -1, 0});
    CHECK(columns_of(data.row(0)) == column_list{0, 3});
    CHECK(columns_of(data.row(1)) == column_list{1});
    CHECK(columns_of(data.row(2)) == column_list{2, 3});
    CHECK(data.values == std::vector<float>{0.5F, -20, 1, 1, 7});
    CHECK(data.row(2).value(1) == 7);
}

TEST_CASE("libsvm: values that are all 1 are not held") {
    const text_files here;
    const sparse_dataset data =
        read_libsvm(here.write("1 0:1 5\r\n-2.5 2:1.0\n"), 0, 1, {.columns = 9, .first_index = 0});
    CHECK(data.values.empty());
    CHECK(data.columns == 9);
    CHECK(columns_of(data.row(0)) == column_list{0, 5});
    CHECK(data.row(0).value(1) == 1);
    CHECK(data.labels[1] == -2.5F);
    CHECK(read_libsvm(here.write("")).rows == 0);
    CHECK(read_libsvm(here.write("3")).starts == std::vector<std::uint64_t>{0, 0});
}

TEST_CASE("libsvm: each line belongs to one rank, in a plain file as in a packed one") {
    const text_files here;
    for (const int count : {0, 1, 3, 100, 20'000})
        for (const bool packed : {false, true}) {
            const std::string text = numbered_lines(count);
            const std::string path = here.write(packed ? gzip_of(text) : text);
            const sparse_dataset all = read_libsvm(path);
            REQUIRE(all.rows == static_cast<std::size_t>(count));
            for (const int size : {2, 3, 8}) {
                sparse_dataset joined;
                for (int rank = 0; rank < size; ++rank) {
                    const sparse_dataset part = read_libsvm(path, rank, size);
                    CHECK(part.starts.size() == part.rows + 1);
                    joined.labels.insert(joined.labels.end(), part.labels.begin(), part.labels.end());
                    joined.indices.insert(joined.indices.end(), part.indices.begin(), part.indices.end());
                    if (count == 20'000) CHECK(part.rows > all.rows / static_cast<std::size_t>(size) * 9 / 10);
                }
                CHECK(joined.labels == all.labels);
                CHECK(joined.indices == all.indices);
            }
        }
}

TEST_CASE("libsvm: a line belongs to the rank in whose part its first byte lies") {
    const text_files here;
    const std::string path =
        here.write("1 1\n2 2\n3 3\n4 4\n");  // two parts of eight bytes: the border is a line's begin
    CHECK(read_libsvm(path, 0, 2).labels == std::vector<float>{1, 2});
    CHECK(read_libsvm(path, 1, 2).labels == std::vector<float>{3, 4});
    const std::string long_line = here.write("1 1:0.00000000000000000000000000001\n2\n");
    CHECK(read_libsvm(long_line, 0, 3).labels == std::vector<float>{1});
    CHECK(read_libsvm(long_line, 1, 3).rows == 0);
    CHECK(read_libsvm(long_line, 2, 3).labels == std::vector<float>{2});
}

TEST_CASE("libsvm: a line longer than any buffer") {
    const text_files here;
    std::string text = "1";
    for (int i = 1; i <= 60'000; ++i) text += " " + std::to_string(i) + ":0.25";
    const sparse_dataset data = read_libsvm(here.write(text + "\n2 1\n"), 0, 1);
    CHECK(data.rows == 2);
    CHECK(data.row(0).size() == 60'000);
    CHECK(data.values.back() == 1);
    CHECK(read_libsvm(here.directory / "samples", 1, 2).rows == 1);
}

TEST_CASE("libsvm: a number too small for a float is 0, or a denormal number") {
    const text_files here;
    const std::string zeros(6'000, '0');
    for (const std::string small : {"1e-400", "1e-60", "1e-5000", "7e-46", "1e-99999999999999999999"})
        CHECK_MESSAGE(read_libsvm(here.write("1 1:" + small)).values == std::vector<float>{0}, small);
    CHECK(read_libsvm(here.write("1 1:0." + zeros + "1")).values == std::vector<float>{0});
    CHECK(read_libsvm(here.write("-1e-5000 1:2")).labels == std::vector<float>{0});
    CHECK(std::signbit(read_libsvm(here.write("1 1:-1e-5000")).values[0]));
    CHECK(read_libsvm(here.write("1 1:1.4e-45 2:-1e-40")).values == std::vector<float>{1.4e-45F, -1e-40F});
    CHECK(read_libsvm(here.write("1 1:0." + zeros + "2e+6001")).values == std::vector<float>{2});
}

TEST_CASE("libsvm: a number too large for a float is an error that says so") {
    const text_files here;
    const std::string too_large = "expected a value that a float holds (this one is too large), found ";
    for (const std::string large : {"1e39", "1e400", "-1e5000", "3.5E+38", "1e99999999999999999999", "0.0001e43"})
        CHECK(here.error_of("1 2\n1 1:" + large) == "line 2, column 5: " + too_large + '"' + large + '"');
    const std::string zeros(39, '0');
    CHECK(here.error_of("1 2\n1 1:1" + zeros) == "line 2, column 5: " + too_large + "\"1" + zeros + '"');
    CHECK(here.error_of("1e39 1:1") ==
          "line 1, column 1: expected a label that a float holds (this one is too large), found \"1e39\"");
    CHECK(here.error_of("1 1:inf") == "line 1, column 5: expected a value (a finite number), found \"inf\"");
}

TEST_CASE("libsvm: an error names the line and the column") {
    const text_files here;
    CHECK(here.error_of("1 1:2\nx 1:2\n") == "line 2, column 1: expected a label (a finite number), found \"x\"");
    CHECK(here.error_of("nan 1:2") == "line 1, column 1: expected a label (a finite number), found \"nan\"");
    CHECK(here.error_of("1:2 3") == "line 1, column 2: expected a blank behind the label, found \":2\"");
    CHECK(here.error_of("1 qid:3") == "line 1, column 3: expected the number of a column, found \"qid:3\"");
    CHECK(here.error_of("1 2:3 2:4") ==
          "line 1, column 7: expected a column from 3 to 4294967295 (columns ascend), found \"2:4\"");
    CHECK(here.error_of("1 0:3") == "line 1, column 3: expected a column from 1 to 4294967295, found \"0:3\"");
    CHECK(here.error_of("\n\n1 8:3", {.columns = 8, .first_index = 0}) ==
          "line 3, column 3: expected a column from 0 to 7, found \"8:3\"");
    CHECK(here.error_of("1 2:") == "line 1, column 5: expected a value (a finite number), found the end of the line");
    CHECK(here.error_of("1 2:+-1") == "line 1, column 5: expected a value (a finite number), found \"+-1\"");
    CHECK(here.error_of("1 2;1") ==
          "line 1, column 4: expected \":\" and a value, or a blank, behind the column, found \";1\"");
    CHECK(here.error_of(std::string("1 \x01\0:", 5)) ==
          "line 1, column 3: expected the number of a column, found \"??:\"");
    CHECK(here.error_of("1 99999999999999999999:1") ==
          "line 1, column 3: expected the number of a column, found \"99999999999999999999:1\"");
}

TEST_CASE("libsvm: a rank that begins in the middle names the line of the file") {
    const text_files here;
    std::string text;
    for (int i = 0; i < 30'000; ++i) text += i == 25'000 ? "\t 1 4:x\n" : "1 4:1\n";
    const std::string expected = "line 25001, column 7: expected a value (a finite number), found \"x\"";
    CHECK(here.error_of(text, {}, 3, 4) == expected);
    CHECK(here.error_of(gzip_of(text), {}, 3, 4) == expected);
    CHECK(here.error_of(text) == expected);
    here.write(text);
    CHECK(read_libsvm(here.directory / "samples", 0, 4).rows == 7'501);
}

TEST_CASE("libsvm: files that cannot be read or are damaged") {
    const text_files here;
    const std::string missing = message_of<data_error>([&] { read_libsvm(here.directory / "none", 1, 2); });
    CHECK_MESSAGE(has(missing, "none: cannot be opened: No such file"), missing);
    std::string packed = gzip_of(numbered_lines(1000));
    packed.resize(packed.size() / 2);
    for (const int size : {1, 2}) {
        const std::string cut = here.error_of(packed, {}, 0, size);
        CHECK_MESSAGE(has(cut, "expected the rest of the gzip stream, found the end of the file"), cut);
    }
    CHECK_THROWS_AS(read_libsvm(here.write("1"), 2, 2), contract_violation);
}

TEST_CASE("libsvm: its rows come in batches") {
    const text_files here;
    const sparse_dataset data = read_libsvm(here.write(numbered_lines(20)));
    minibatches_of<sparse_dataset> batches{data, {.batch = 4}};
    const sparse_batch some = batches.next();
    CHECK(&some.data == &data);
    CHECK(some.rows.size() == 4);
    CHECK(some.weight<double>(0) == 0.25);
}
