#pragma once

#include <rill/core/config.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

template <std::unsigned_integral U>
constexpr U little_endian(U value) {
    if constexpr (std::endian::native == std::endian::little || sizeof(U) == 1) return value;
    U swapped = 0;
    for (std::size_t i = 0; i < sizeof(U); ++i)
        swapped = static_cast<U>(swapped | (((value >> (8 * i)) & 0xFFU) << (8 * (sizeof(U) - 1 - i))));
    return swapped;
}

/// Reads a little-endian integer.
template <std::unsigned_integral U>
U load_little(const void* from) {
    U value;
    std::memcpy(&value, from, sizeof value);
    return little_endian(value);
}

/// Writes a little-endian integer.
template <std::unsigned_integral U>
void store_little(void* to, U value) {
    value = little_endian(value);
    std::memcpy(to, &value, sizeof value);
}

}}}  // namespace rill::RILL_ABI::kernel::detail
