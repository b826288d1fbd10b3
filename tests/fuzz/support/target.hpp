#pragma once

#include <cstddef>
#include <cstdint>

#ifdef RILL_FUZZ_REPLAY

namespace rill::fuzz {

/// A target of the program that replays inputs; all of them form a list.
struct target {
    target(const char* its_name, int (*its_function)(const std::uint8_t*, std::size_t));

    const char* name;
    int (*run)(const std::uint8_t* data, std::size_t size);
    const target* next;
};

}  // namespace rill::fuzz

/// Begins the function of a fuzz target: `RILL_FUZZ_TARGET(name)(const std::uint8_t* data, std::size_t size) {...}`.
#define RILL_FUZZ_TARGET(name)                                        \
    static int run_##name(const std::uint8_t*, std::size_t);          \
    static const rill::fuzz::target target_##name(#name, run_##name); \
    static int run_##name

#else
#define RILL_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#endif
