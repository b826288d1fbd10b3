#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// A copy of at least this many bytes bypasses the caches. Otherwise the target's lines would be read only to be
/// overwritten, and they would evict lines that are still needed.
inline constexpr std::size_t least_streamed_copy = std::size_t{1} << 19;

/// Copies one cache line to `target`, which is aligned to a line; does not read `target` where the machine allows it.
inline void stream_line(const unsigned char* source, unsigned char* target) {
#if defined(__SSE2__)
    const auto* const from = reinterpret_cast<const __m128i*>(source);
    auto* const to = reinterpret_cast<__m128i*>(target);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
#else
    rill::detail::copy_elements(source, 64, target);
#endif
}

/// Fences streamed stores. Ordinary release operations do not order them before later stores that other threads see.
inline void end_streaming() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

[[gnu::noinline]] inline void copy_bytes(const unsigned char* source, std::size_t size, unsigned char* target) {
    std::size_t first = 0, last = 0;
#if defined(__SSE2__)
    constexpr std::size_t line = 64;
    if (size >= least_streamed_copy) {
        first = (line - reinterpret_cast<std::uintptr_t>(target) % line) % line;
        last = first + (size - first) / line * line;
        for (std::size_t i = first; i < last; i += line) stream_line(source + i, target + i);
        end_streaming();
    }
#endif
    rill::detail::copy_elements(source, first, target);
    rill::detail::copy_elements(source + last, size - last, target + last);
}
}  // namespace detail

/// Copies `source` to `target`, which has the same length and does not overlap it. Large copies bypass the caches.
template <class T>
void copy(std::span<const T> source, std::span<T> target) {
    static_assert(std::is_trivially_copyable_v<T>);
    RILL_EXPECTS(source.size() == target.size(), "copy: source and target differ in length");
    detail::copy_bytes(reinterpret_cast<const unsigned char*>(source.data()), source.size_bytes(),
                       reinterpret_cast<unsigned char*>(target.data()));
}

}}}  // namespace rill::RILL_ABI::kernel
