#pragma once

#include <cstdio>
#include <cstdlib>

namespace rill::fuzz {

/// Ends the process, so that the fuzzer keeps the input.
[[noreturn]] inline void fail(const char* what, const char* condition, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: %s (expected: %s)\n", file, line, what, condition);
    std::abort();
}

}  // namespace rill::fuzz

/// Ends the process unless `condition` holds, which it must for every input.
#define RILL_FUZZ_REQUIRE(condition, what) \
    ((condition) ? static_cast<void>(0) : ::rill::fuzz::fail(what, #condition, __FILE__, __LINE__))
