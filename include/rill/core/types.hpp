#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that can be sent; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` if `T` cannot be sent.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// The name of an element type in error messages, such as "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}}  // namespace rill::RILL_ABI
