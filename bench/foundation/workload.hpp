// What the programs of this family compute: the same vectors, so that rill and its baseline do the same work.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace foundation {

/// Entry i of a rank's vector: small integers, so that every order of summation gives the same sum.
inline float entry(int rank, std::size_t i) { return static_cast<float>(i % 1024) + static_cast<float>(rank); }

inline float entry_of_sum(int ranks, std::size_t i) {
    return static_cast<float>(ranks) * static_cast<float>(i % 1024) + static_cast<float>(ranks * (ranks - 1) / 2);
}

inline void fill(std::vector<float>& x, int rank) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = entry(rank, i);
}

inline void require_sum(const std::vector<float>& x, int ranks) {
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != entry_of_sum(ranks, i)) throw std::runtime_error("wrong sum at entry " + std::to_string(i));
}

/// How often an operation is timed: `samples` times, each the mean over `batch` calls in a row.
struct repetition {
    int samples = 1;
    int batch = 1;
};

inline void print_as_json(const std::vector<double>& seconds) {
    const char* separator = "[";
    for (const double each : seconds) {
        std::printf("%s%.9g", separator, each);
        separator = ", ";
    }
    std::printf("]\n");
}

}  // namespace foundation
