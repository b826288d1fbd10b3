#include "../support/scratch.hpp"

#include <rill/train/file.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

using namespace rill;
using namespace rill::train;

TEST_CASE("file: is replaced as a whole and read back") {
    const scratch_directory here;
    for (std::size_t size : {0U, 5U, 3U}) {
        const std::vector<std::byte> bytes(size, std::byte{7});
        replace_file(here / "file", bytes);
        CHECK(read_file(here / "file") == bytes);
        CHECK(here.entries() == 1);
    }
}

TEST_CASE("file: what another process writes to the same path is not touched") {
    const scratch_directory here;
    const std::string path = here / "file";
    const std::vector<std::byte> others(2, std::byte{1}), mine(3, std::byte{7});
    // What a process of another host, with the same number, has begun to write.
    const auto partial = [&](int i) {
        return path + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".partial";
    };
    for (int i = 0; i < 100; ++i) std::ofstream(partial(i)) << "\1\1";
    replace_file(path, mine);
    CHECK(read_file(path) == mine);
    for (int i = 0; i < 100; ++i) CHECK(read_file(partial(i)) == others);
    CHECK(here.entries() == 101);
}

TEST_CASE("file: errors name the file and the reason") {
    const scratch_directory here;
    const auto says = [&](auto call, const std::string& part) {
        const std::string message = message_of<data_error>(call);
        CHECK_MESSAGE(has(message, part), message);
    };
    says([&] { read_file(here / "none"); }, "rill: " + (here / "none") + ": cannot be opened: No such file");
    says([&] { read_file(here / ""); }, "cannot be read: Is a directory");
    says([&] { replace_file(here / "none/file", {}); }, "none/file: cannot be written: No such file");
    says([&] { replace_file(here / "", {}); }, "cannot be written");
    CHECK(here.entries() == 0);
}
