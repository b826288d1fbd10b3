#pragma once

#include <sys/resource.h>

/// While it lives, this process gets no more descriptors: what would make one fails with "Too many open files".
class few_descriptors {
  public:
    few_descriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit few{.rlim_cur = 3, .rlim_max = before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    few_descriptors(const few_descriptors&) = delete;
    few_descriptors& operator=(const few_descriptors&) = delete;
    ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};
