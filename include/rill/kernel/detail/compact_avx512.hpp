// Compaction of 32-bit lanes with AVX-512. A register is compressed and stored whole, so that memory beyond the result
// is overwritten: compressing straight to memory is microcoded on Zen 4.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/kernel/detail/avx512.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// The steps of `portable_steps` with AVX-512, for floats with 32-bit coordinates.
class avx512_steps {
  public:
    static bool any_at_least(const float* x, std::uint32_t bound) { return mask_at_least(x, bound) != 0; }

    static std::uint64_t mask_at_least(const float* x, std::uint32_t bound) {
        const __m512i limit = _mm512_set1_epi32(static_cast<int>(bound));
        std::uint64_t mask = 0;
        for (std::size_t j = 0; j < 64; j += lanes)
            mask |= static_cast<std::uint64_t>(_mm512_cmpge_epu32_mask(magnitudes(x + j), limit)) << j;
        return mask;
    }

    static std::uint64_t glance(const float* x, std::uint32_t bound) { return mask_at_least(x, bound); }
    static std::uint64_t mask_after(std::uint64_t mask, const float*, std::uint32_t) { return mask; }

    static void append(std::uint64_t mask, const float* x, std::size_t first, std::uint32_t* indices,
                       std::uint32_t* keys) {
        const __m512i each = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        std::size_t count = 0;
        for (std::size_t j = 0; j < 64; j += lanes) {
            const auto chosen = static_cast<__mmask16>(mask >> j);
            compress(chosen, _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first + j)), each), indices + count);
            compress(chosen, magnitudes(x + j), keys + count);
            count += number_of(chosen);
        }
    }

    static std::size_t keep_at_most(const std::uint32_t* keys, std::uint32_t high, std::uint32_t* to) {
        const __m512i limit = _mm512_set1_epi32(static_cast<int>(high));
        std::size_t count = 0;
        for (std::size_t j = 0; j < 64; j += lanes) {
            const __m512i each = _mm512_loadu_si512(keys + j);
            const __mmask16 chosen = _mm512_cmple_epu32_mask(each, limit);
            compress(chosen, each, to + count);
            count += number_of(chosen);
        }
        return count;
    }

    static std::size_t keep_at_least(const std::uint32_t* indices, const std::uint32_t* keys, std::uint32_t bound,
                                     std::uint32_t* to) {
        const __m512i limit = _mm512_set1_epi32(static_cast<int>(bound));
        std::size_t count = 0;
        for (std::size_t j = 0; j < 64; j += lanes) {
            const __mmask16 chosen = _mm512_cmpge_epu32_mask(_mm512_loadu_si512(keys + j), limit);
            compress(chosen, _mm512_loadu_si512(indices + j), to + count);
            count += number_of(chosen);
        }
        return count;
    }

  private:
    static constexpr std::size_t lanes = 16;

    static __m512i magnitudes(const float* x) {
        return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
    }
    static void compress(__mmask16 chosen, __m512i from, std::uint32_t* to) {
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(chosen, from));
    }
    static std::size_t number_of(__mmask16 chosen) {
        return static_cast<std::size_t>(std::popcount(static_cast<std::uint32_t>(chosen)));
    }
};

}}}  // namespace rill::RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
