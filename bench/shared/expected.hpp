// Expected results: sums by definition, one entry after the other.
#pragma once

#include <rill/stream/stream.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

inline void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error("wrong: " + what);
}

/// Compares entry by entry; neither may contain NaN.
inline void require_equal(std::span<const float> found, std::span<const float> expected, const std::string& what) {
    require(found.size() == expected.size(), what + " has " + std::to_string(found.size()) + " entries");
    const auto [at, due] = std::mismatch(found.begin(), found.end(), expected.begin());
    if (at == found.end()) return;
    require(false, what + " at entry " + std::to_string(at - found.begin()) + ": " + std::to_string(*at) + ", not " +
                       std::to_string(*due));
}

/// Adds the entries of a sparse vector to a dense one.
inline void add_entries(std::span<const std::uint32_t> indices, std::span<const float> values, std::span<float> to) {
    for (std::size_t k = 0; k < indices.size(); ++k) to[indices[k]] += values[k];
}

/// Checks that each value was rounded to one of its two neighbouring levels, in steps of the bucket's largest
/// magnitude.
inline void require_rounded(std::span<const float> found, std::span<const float> x, std::span<const float> scales,
                            std::size_t bucket, unsigned bits, const std::string& what) {
    const auto levels = static_cast<float>((1U << (bits - 1)) - 1);
    for (std::size_t b = 0; b < scales.size(); ++b) {
        float largest = 0;
        for (std::size_t i = b * bucket; i < std::min((b + 1) * bucket, x.size()); ++i) {
            largest = std::max(largest, std::abs(x[i]));
            require(std::abs(found[i] - x[i]) <= 1.0001F * scales[b] / levels, what + " at entry " + std::to_string(i));
        }
        require(scales[b] == largest, what + ": the scale of bucket " + std::to_string(b));
    }
}

/// The `count` largest magnitudes, ties by the lower coordinate, in ascending order.
inline void require_largest(std::span<const std::uint32_t> found, std::span<const float> x, std::uint32_t first,
                            const std::string& what) {
    require(std::adjacent_find(found.begin(), found.end(), std::greater_equal<>()) == found.end(),
            what + ": the order");
    float least = std::numeric_limits<float>::infinity();
    for (const std::uint32_t i : found) least = std::min(least, std::abs(x[i - first]));
    bool tie_left = false;  // a tie that is left out ends those that are taken
    for (std::size_t i = 0, next = 0; i < x.size(); ++i) {
        const bool taken = next < found.size() && found[next] == first + i;
        next += taken ? 1U : 0U;
        const bool is_tie = std::abs(x[i]) == least;
        require(taken ? !(is_tie && tie_left) : !(std::abs(x[i]) > least), what + " at entry " + std::to_string(i));
        tie_left |= is_tie && !taken;
    }
}

/// The sum over all ranks of the sparse streams `input_of(rank)`, in the order of the ranks.
template <class Input>
std::vector<float> dense_sum(std::size_t dimension, int ranks, Input&& input_of) {
    std::vector<float> sum(dimension);
    for (int rank = 0; rank < ranks; ++rank) {
        const rill::stream<float> input = input_of(rank);
        add_entries(input.indices(), input.values(), sum);
    }
    return sum;
}

/// Compares a stream, sparse or dense, with the expected vector.
inline void require_equal(const rill::stream<float>& found, std::span<const float> expected, const std::string& what) {
    if (found.is_dense()) return require_equal(found.values(), expected, what);
    std::vector<float> dense(expected.size());
    add_entries(found.indices(), found.values(), dense);
    require_equal(dense, expected, what);
}

}  // namespace bench
