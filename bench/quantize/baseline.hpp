// What quantisation is compared with: copying the vector, and the textbook's loop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>

namespace bench {

/// The scalar loop: a generator with state, a level by `floor` and a comparison, and adjacent entries in one byte. The
/// length is a multiple of `bucket`.
inline void quantize_naive(std::span<const float> x, unsigned bits, std::size_t bucket, std::mt19937& random,
                           std::span<float> scales, std::uint8_t* codes) {
    std::uniform_real_distribution<float> uniform;
    const int levels = (1 << (bits - 1)) - 1;
    const std::size_t per_byte = 8 / bits;
    for (std::size_t b = 0; b < scales.size(); ++b) {
        const auto part = x.subspan(b * bucket, bucket);
        float scale = 0;
        for (const float v : part) scale = std::max(scale, std::abs(v));
        scales[b] = scale;
        for (std::size_t i = 0; i < bucket; i += per_byte) {
            unsigned packed = 0;
            for (std::size_t p = 0; p < per_byte; ++p) {
                const float level = scale > 0 ? part[i + p] / scale * static_cast<float>(levels) : 0;
                const float below = std::floor(level);
                const int rounded = static_cast<int>(below) + (uniform(random) < level - below ? 1 : 0);
                packed |= static_cast<unsigned>(rounded + levels) << (p * bits);
            }
            *codes++ = static_cast<std::uint8_t>(packed);
        }
    }
}

/// Decodes the codes of quantize_naive.
inline void dequantize_naive(const std::uint8_t* codes, std::span<const float> scales, unsigned bits,
                             std::size_t bucket, std::span<float> out) {
    const int levels = (1 << (bits - 1)) - 1;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t bit = i * bits;
        const int code = codes[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
        out[i] = scales[i / bucket] * static_cast<float>(code - levels) / static_cast<float>(levels);
    }
}

}  // namespace bench
