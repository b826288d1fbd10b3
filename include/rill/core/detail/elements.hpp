#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Copies `count` elements as bytes. The two places may overlap. It is one function for each type of element, where
/// `std::copy_n` is eleven for the compiler.
template <class T>
void copy_elements(const T* from, std::size_t count, T* to) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count != 0) std::memmove(to, from, count * sizeof(T));
}

/// Sets `count` elements to one value. It is one function for each type, where `std::fill_n` is five.
template <class T>
void fill_elements(T* to, std::size_t count, T value) {
    for (std::size_t i = 0; i < count; ++i) to[i] = value;
}

}}}  // namespace rill::RILL_ABI::detail
