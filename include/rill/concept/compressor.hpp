#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// What of a worker's contribution is sent, and how: a policy bound to one worker and one dimension.
///
/// - `begin(number)` comes first: the number of the operation, the same on all ranks, from which they draw what they
///   must choose alike (a mask).
/// - `encode(input)` gives a view of what is contributed (a `stream_view` over `[0, coded_dimension())`), valid until
///   the next call. The input is not changed. Throws `invalid_value` where an entry cannot be sent (a NaN), naming it.
/// - Where `is_coordinatewise`, coordinates of the view are coordinates of the input, and `coded_dimension()` is
///   `dimension()`; else `decode(folded, output)` makes the output from the fold of the views. Both dimensions must be
///   the same on all ranks; how many entries a view has need not be.
/// - After each `encode` comes either `commit()`, when the contribution is in the result, or `rollback()`, when it is
///   not: then nothing must be lost. Both may also come without an `encode`, on a rank that contributes nothing.
/// - `codings()` gives the codings of frames (`stream_codings`).
/// - Optional: `fingerprint()`, a hash of what ranks must have alike besides codings (the seed of a mask), compared in
///   each operation. How many entries a rank chooses need not be alike.
/// - Optional: `take_received(view)` (`LearnsReceived`).
/// - Flags: `is_lossless`: nothing is left out or rounded; `is_unbiased`: the expectation of what is sent is the input;
///   `is_contractive`: what is left out is smaller than the input by a constant factor, as error feedback needs;
///   `has_lossless_copy`: the copy phase sends the fold as it is.
template <class C, class T>
concept Compressor = Element<T> && IndexType<typename C::index_type> &&
                     requires(C& codec, const C& constant, std::span<const T> input, std::uint64_t number) {
                         { constant.dimension() } -> std::same_as<std::size_t>;
                         { codec.begin(number) };
                         { codec.coded_dimension() } -> std::same_as<std::size_t>;
                         { codec.encode(input).range() };
                         { codec.commit() };
                         { codec.rollback() };
                         { constant.codings() };
                         { C::is_coordinatewise } -> std::convertible_to<bool>;
                         { C::is_lossless } -> std::convertible_to<bool>;
                         { C::is_unbiased } -> std::convertible_to<bool>;
                         { C::is_contractive } -> std::convertible_to<bool>;
                         { C::has_lossless_copy } -> std::convertible_to<bool>;
                     };

/// A compressor that learns what the receivers decode of its contribution, as it needs to feed back what a lossy value
/// coding rounds off. Between `encode` and `commit`, where the contribution's coding is lossy, `take_received` is
/// called with consecutive slices of the view that `encode` gave, their values as decoded: all of them, or none.
template <class C, class View>
concept LearnsReceived = requires(C& codec, const View& piece) { codec.take_received(piece); };

/// A compressor that error feedback can follow: it is contractive, and it is known what was sent. Coordinates that are
/// those of the input say so themselves. Else `erase_sent(received, values)` takes from `values` (`dimension()`
/// entries) what the receivers make of `received` (`coded_dimension()` entries, as they decode the view of the latest
/// `encode`) when nobody else contributes.
template <class C, class T>
concept FeedbackCompressor =
    Compressor<C, T> && C::is_contractive &&
    (C::is_coordinatewise || requires(const C& constant, std::span<const T> received, std::span<T> values) {
        constant.erase_sent(received, values);
    });

/// The hash of what all ranks must have alike in a codec; 0 where it does not say.
template <class Codec>
std::uint64_t fingerprint_of(const Codec& codec) {
    if constexpr (requires { codec.fingerprint(); })
        return codec.fingerprint();
    else
        return 0;
}

/// `codec.encode(input, executor)` where the codec has that: it may spread its work then. Else `codec.encode(input)`.
template <class Codec, class T, Executor Exec>
auto encode_with(Codec& codec, std::span<const T> input, const Exec& executor) {
    if constexpr (requires { codec.encode(input, executor); })
        return codec.encode(input, executor);
    else
        return codec.encode(input);
}

}}  // namespace rill::RILL_ABI
