#pragma once

#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace rill::inline RILL_ABI {

/// What of a worker's contribution is sent, and how: a policy bound to one worker and one dimension.
///
/// - `encode(input)` gives a view of what is contributed (a `stream_view`), valid until the next call. The input is not
///   changed. Throws `invalid_value` where an entry cannot be sent (a NaN), naming the coordinate.
/// - After each `encode` comes either `commit()`, when the contribution is in the result, or `rollback()`, when it is
/// not:
///   then nothing must be lost. Neither throws.
/// - `codings()` gives the codings of frames (`stream_codings`).
/// - Flags: `is_lossless`: `encode` keeps every entry; `is_unbiased`: its expectation is the input; `is_contractive`:
/// what it
///   leaves out is smaller than the input by a constant factor, as error feedback needs. `has_lossless_copy`: the copy
///   phase sends the fold as it is.
template <class C, class T>
concept Compressor =
    Element<T> && IndexType<typename C::index_type> && requires(C& codec, const C& constant, std::span<const T> input) {
        { constant.dimension() } -> std::same_as<std::size_t>;
        { codec.encode(input).range() };
        { codec.commit() };
        { codec.rollback() };
        { constant.codings() };
        { C::is_lossless } -> std::convertible_to<bool>;
        { C::is_unbiased } -> std::convertible_to<bool>;
        { C::is_contractive } -> std::convertible_to<bool>;
        { C::has_lossless_copy } -> std::convertible_to<bool>;
    };

}  // namespace rill::inline RILL_ABI
