#pragma once

#include "require.hpp"

#include <rill/core/bytes.hpp>

#include <cstddef>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace rill::fuzz {

/// A file with a path that never touches a disk; each `write` replaces its contents.
class memory_file {
  public:
    memory_file() : number_(::memfd_create("rill-fuzz", MFD_CLOEXEC)) {
        RILL_FUZZ_REQUIRE(number_ >= 0, "a file in memory");
    }
    memory_file(const memory_file&) = delete;
    memory_file& operator=(const memory_file&) = delete;
    ~memory_file() { ::close(number_); }

    std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

    const memory_file& write(byte_view bytes) {
        RILL_FUZZ_REQUIRE(::ftruncate(number_, 0) == 0, "an empty file");
        RILL_FUZZ_REQUIRE(::pwrite(number_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
                          "a file written in one go");
        return *this;
    }

  private:
    int number_;
};

}  // namespace rill::fuzz
