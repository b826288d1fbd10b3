#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace rill { inline namespace RILL_ABI {

/// How the values of a frame are written: a type of the user's, which `compress::own_values` brings into frames.
///
/// - `size(count, element_bytes)`: the bytes of `count` coded values of elements of that size; at least one bit each.
/// - `encode(values, key, first, out)`: writes all `size` bytes of `out`. Random rounding of value i draws number
///   `first` + i of `key`.
/// - `decode(bytes, values)`: reads `values.size()` values from as many bytes as `size` says. Bytes that `encode` never
///   writes give finite values, or `protocol_error` is thrown.
/// - `is_lossless`: decoding gives back every value bit for bit. Other codings are given finite values only.
///   `is_unbiased`: the expectation of a decoded value is the one that was coded.
/// - `is_contractive`, if it is there and true: the Euclidean norm of the rounding error is less than that of the
///   values. Error feedback takes no others, except lossless ones.
///
/// Members that influence bytes or values are options, which ranks compare: then `visit_options` names all of them
/// (`HasOptions`). `encode` and `decode` are templates or overloads for float and double.
template <class V>
concept ValueCoding = Regular<V> && (std::is_empty_v<V> || HasOptions<V>)&&requires(
                                        const V& coding, std::span<const float> floats, std::span<const double> doubles,
                                        std::span<float> to_floats, std::span<double> to_doubles, byte_view bytes,
                                        byte_span out, random_key key, std::uint64_t first) {
    { coding.size(std::size_t{1}, std::size_t{4}) } -> std::same_as<std::size_t>;
    coding.encode(floats, key, first, out);
    coding.encode(doubles, key, first, out);
    coding.decode(bytes, to_floats);
    coding.decode(bytes, to_doubles);
    { V::is_lossless } -> std::convertible_to<bool>;
    { V::is_unbiased } -> std::convertible_to<bool>;
    { V::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
