// What selections are compared with: reading the vector once, and selecting with the standard library alone.
#pragma once

#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace bench {

/// One pass over `x` at the speed of the memory, in every build: registers of the widest kind, eight at a time, so that
/// no operation waits for another. The length is a multiple of 128.
inline std::uint32_t read_pass(std::span<const float> x) {
    constexpr std::size_t width = __BIGGEST_ALIGNMENT__, parts = 8, step = parts * width / sizeof(float);
    using vector [[gnu::vector_size(width)]] = std::uint32_t;
    vector sums[parts] = {};
    for (std::size_t i = 0; i + step <= x.size(); i += step) {
        const char* from = reinterpret_cast<const char*>(x.data() + i);
#pragma GCC unroll 8
        for (std::size_t j = 0; j < parts; ++j) {
            vector v;
            std::memcpy(&v, from + j * width, width);
            sums[j] ^= v;
        }
    }
    std::uint32_t result = 0;
    for (const vector& sum : sums)
        for (std::size_t j = 0; j < width / sizeof(float); ++j) result ^= sum[j];
    return result;
}

/// The k largest magnitudes of x[0, n), ties by the lower coordinate, in ascending order: `std::nth_element` on copied
/// keys finds the threshold, and a pass collects what it selects. `keys` has room for n.
inline void top_k_nth_element(std::span<const float> x, std::uint32_t first, std::size_t k, std::uint32_t* keys,
                              std::uint32_t* out) {
    for (std::size_t i = 0; i < x.size(); ++i) keys[i] = rill::kernel::magnitude(x[i]);
    std::nth_element(keys, keys + (k - 1), keys + x.size(), std::greater<>());
    const std::uint32_t cut = keys[k - 1];
    std::size_t ties = k;
    for (std::size_t i = 0; i < k; ++i) ties -= keys[i] > cut ? 1U : 0U;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint32_t key = rill::kernel::magnitude(x[i]);
        if (key < cut || (key == cut && ties == 0)) continue;
        ties -= key == cut ? 1U : 0U;
        *out++ = first + static_cast<std::uint32_t>(i);
    }
}

/// `top_k_nth_element` of each `bucket` consecutive entries.
inline void bucket_top_k_nth_element(std::span<const float> x, std::size_t bucket, std::size_t k, std::uint32_t* keys,
                                     std::uint32_t* out) {
    for (std::size_t i = 0; i + bucket <= x.size(); i += bucket, out += k)
        top_k_nth_element(x.subspan(i, bucket), static_cast<std::uint32_t>(i), k, keys, out);
}

}  // namespace bench
