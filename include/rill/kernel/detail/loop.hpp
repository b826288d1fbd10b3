#pragma once

#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Trip count of inner loops: a constant, because compilers vectorise no other loops at -O2.
inline constexpr std::size_t block = 64;

/// Prefetches the cache line of `address` to the L2 cache: L1 allows too few outstanding requests to keep the memory
/// busy.
inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address, 0, 1);
#else
    static_cast<void>(address);
#endif
}

/// Whether a compiler can fuse a product and a sum into one operation, which rounds once.
#if defined(__x86_64__) && !defined(__FMA__)
inline constexpr bool fuses_products = false;
#else
inline constexpr bool fuses_products = true;
#endif

/// Hides the values' origin from the optimiser: a product that passes through here is rounded and never becomes part of
/// a fused multiply-add.
template <class T, std::size_t Count>
void round_here(T (&values)[Count]) {
#if defined(__GNUC__)
    asm volatile("" : "+m"(values));  // an operand, not a clobber: the array must not count as escaped
#else
    static_cast<void>(values);
#endif
}

/// Hides a value's origin from the optimiser: loads that pass through here are not turned into gathers, which are
/// slower than single loads with AVX2.
template <class T>
void load_alone(T& value) {
#if defined(__GNUC__)
    asm("" : "+r"(value));
#else
    static_cast<void>(value);
#endif
}

}}}  // namespace rill::RILL_ABI::kernel::detail
