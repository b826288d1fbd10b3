// A limit for the size of files, as on a disk that is full.
#pragma once

#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>

#include <sys/resource.h>

/// While it lives, a write beyond `bytes` of a file fails with "File too large".
class file_limit {
  public:
    explicit file_limit(std::size_t bytes) {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit small{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    }
    file_limit(const file_limit&) = delete;
    file_limit& operator=(const file_limit&) = delete;
    ~file_limit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

  private:
    rlimit before_{};
    void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};
