// Streams that the tests of streams and frames share.
#pragma once

#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rill::stream_tests {

template <class T, class I>
struct row {
    using element = T;
    using index = I;
};

#define RILL_STREAM_ROWS                                                                                            \
    rill::stream_tests::row<float, std::uint32_t>, rill::stream_tests::row<float, std::uint64_t>,                   \
        rill::stream_tests::row<double, std::uint32_t>, rill::stream_tests::row<double, std::uint64_t>,             \
        rill::stream_tests::row<std::int32_t, std::uint32_t>, rill::stream_tests::row<std::int32_t, std::uint64_t>, \
        rill::stream_tests::row<std::int64_t, std::uint32_t>, rill::stream_tests::row<std::int64_t, std::uint64_t>

/// Noise whose sums in different orders differ in their last bits; for integer types small whole numbers.
template <class T>
T noise(random_sequence& random) {
    if constexpr (std::floating_point<T>)
        return static_cast<T>(random.uniform()) * T{2} - T{1} + static_cast<T>(random.uniform()) * T{1e-5F};
    else
        return static_cast<T>(random.below(2001)) - T{1000};
}

/// Each coordinate of `range` with probability `density`; dense if `density` is 1.
template <class T, class Index>
stream<T, Index> sample(segment range, float density, std::uint64_t seed) {
    random_sequence random(random_key{seed});
    stream<T, Index> s;
    if (density >= 1) {
        for (T& value : s.make_dense(range)) value = noise<T>(random);
        return s;
    }
    s.clear(range);
    for (std::size_t i = range.begin; i < range.end; ++i)
        if (random.uniform() < density) s.push_back(i, noise<T>(random));
    return s;
}

}  // namespace rill::stream_tests
