// Chooses one of two values without a branch. Compilers turn a conditional expression into a branch.
#pragma once

#include <rill/core/types.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Returns `one` if `which` is 1, `other` if it is 0.
template <Element T>
T pick(std::size_t which, T one, T other) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<bits>(one), y = std::bit_cast<bits>(other);
    return std::bit_cast<T>(static_cast<bits>(y ^ ((x ^ y) & (bits{0} - static_cast<bits>(which)))));
}

/// Returns the address `one` if `which` is 1, `other` if it is 0.
template <class T>
const T* pick(std::size_t which, const T* one, const T* other) {
    const auto x = reinterpret_cast<std::uintptr_t>(one), y = reinterpret_cast<std::uintptr_t>(other);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): both are addresses
    return reinterpret_cast<const T*>(y ^ ((x ^ y) & (std::uintptr_t{0} - which)));
}

}}}  // namespace rill::RILL_ABI::kernel::detail
