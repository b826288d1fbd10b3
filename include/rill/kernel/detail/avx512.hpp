// <immintrin.h>, and the macros that enclose code that uses it.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about its own intrinsics wherever they are inlined, because they pass uninitialised registers.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif
