// What masks are compared with: one random number for each coordinate. All write the selected coordinates.
#pragma once

#include <rill/core/random.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace bench {

/// 2^32 times the probability.
inline std::uint32_t bound_of(double density) { return static_cast<std::uint32_t>(density * 0x1p32); }

inline std::size_t bernoulli_mask(double density, std::size_t n, std::uint32_t* out) {
    std::mt19937_64 engine(1);
    std::bernoulli_distribution hit(density);
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i)
        if (hit(engine)) out[count++] = static_cast<std::uint32_t>(i);
    return count;
}

/// One hash per coordinate, without a branch.
inline std::size_t branchless_mask(double density, std::size_t n, std::uint32_t* out) {
    const std::uint32_t bound = bound_of(density);
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
        out[count] = static_cast<std::uint32_t>(i);
        count += rill::counter_bits(1, 2, static_cast<std::uint32_t>(i)) < bound ? 1U : 0U;
    }
    return count;
}

/// Vectorised hashes of 64 coordinates, which are inspected one by one only if one is selected. `n` is a multiple of
/// 64.
inline std::size_t block_mask(double density, std::size_t n, std::uint32_t* out) {
    const std::uint32_t bound = bound_of(density);
    std::size_t count = 0;
    for (std::size_t first = 0; first < n; first += 64) {
        alignas(64) std::uint8_t hits[64];
        std::uint32_t any = 0;
        for (std::size_t j = 0; j < 64; ++j) {
            const bool hit = rill::counter_bits(1, 2, static_cast<std::uint32_t>(first + j)) < bound;
            hits[j] = hit ? 1 : 0;
            any |= hit ? 1U : 0U;
        }
        if (any == 0) continue;
        for (std::size_t j = 0; j < 64; j += 8) {
            std::uint64_t eight;
            std::memcpy(&eight, hits + j, 8);
            for (; eight != 0; eight &= eight - 1)
                out[count++] =
                    static_cast<std::uint32_t>(first + j + static_cast<std::size_t>(std::countr_zero(eight)) / 8);
        }
    }
    return count;
}

#if defined(__AVX512F__)
/// Hashes of 16 coordinates, which are compressed. `n` is a multiple of 16; `out` has room for 16 entries more.
inline std::size_t avx512_mask(double density, std::size_t n, std::uint32_t* out) {
    // Shifts with a mask: g++ 12 warns of what is undefined inside of those without.
    const __m512i bound = _mm512_set1_epi32(static_cast<int>(bound_of(density)));
    __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; i += 16) {
        __m512i h = _mm512_xor_si512(_mm512_mullo_epi32(index, _mm512_set1_epi32(static_cast<int>(0x9E3779B1U))),
                                     _mm512_set1_epi32(1));
        h = _mm512_xor_si512(h, _mm512_maskz_srli_epi32(0xFFFF, h, 16));
        h = _mm512_mullo_epi32(h, _mm512_set1_epi32(0x7FEB352D));
        h = _mm512_xor_si512(h, _mm512_maskz_srli_epi32(0xFFFF, h, 15));
        h = _mm512_add_epi32(h, _mm512_set1_epi32(2));
        h = _mm512_mullo_epi32(h, _mm512_set1_epi32(static_cast<int>(0x846CA68BU)));
        h = _mm512_xor_si512(h, _mm512_maskz_srli_epi32(0xFFFF, h, 16));
        const __mmask16 hits = _mm512_cmplt_epu32_mask(h, bound);
        if (hits != 0) {
            _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(hits, index));
            count += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(hits)));
        }
        index = _mm512_add_epi32(index, _mm512_set1_epi32(16));
    }
    return count;
}
#endif

/// The cost of one pass over the entries themselves.
inline float read_pass(const float* x, std::size_t n) {
    float sums[64] = {};
    for (std::size_t i = 0; i < n; i += 64)
        for (std::size_t j = 0; j < 64; ++j) sums[j] += x[i + j];
    float sum = 0;
    for (const float each : sums) sum += each;
    return sum;
}

}  // namespace bench
