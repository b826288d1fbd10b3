#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// A codec: chooses which entries of a worker's contribution are sent and how they are coded. It is a policy that is
/// bound to one worker and one dimension.
///
/// - `begin(number)` is called first, with the number of the operation. The number is the same on all ranks, and
///   choices that must be the same on all ranks (a mask) are drawn from it.
/// - `encode(input)` returns a view of what is sent (a `stream_view` over `[0, coded_dimension())`), valid until the
///   next call. The input is not changed. If an entry cannot be sent (a NaN), it throws `invalid_value`, which names
///   the entry.
/// - If `is_coordinatewise`, coordinates of the view are coordinates of the input, and `coded_dimension()` is
///   `dimension()`. Otherwise `decode(folded, output)` computes the output from the fold of the views. Both dimensions
///   must be the same on all ranks; the number of entries in a view may differ.
/// - Each `encode` is followed by `commit()` if the contribution is in the result, or by `rollback()` if it is not;
///   after a `rollback` nothing may be lost. Both may also come without an `encode`, on a rank that contributes
///   nothing.
/// - `codings()` returns the codings of the frames (`stream_codings`).
/// - Refinements: `FingerprintedCompressor`, `KnownCodingsCompressor`, `ParallelCompressor`, `ScalingCompressor`,
///   `LearnsReceived`, `ResidualCompressor`, `AlikeCompressor`.
/// - Flags: `is_lossless`: nothing is left out or rounded; `is_unbiased`: the expectation of what is sent is the input;
///   `is_contractive`: what is left out is smaller than the input by a constant factor, as error feedback needs;
///   `has_lossless_copy`: the copy phase (the rounds in which finished parts are sent on unchanged) sends the fold
///   without rounding it.
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
/// called with consecutive slices of the view that `encode` gave, their values as decoded: all of them, or none. A
/// compressor with a member `learns_received()` may say that it does without them; then parts of the contribution
/// travel while others are encoded.
template <class C, class View>
concept LearnsReceived = requires(C& codec, const View& piece) { codec.take_received(piece); };

/// Whether a codec wants to learn what the receivers decode.
template <class View, class Codec>
constexpr bool learns_received([[maybe_unused]] const Codec& codec) {
    if constexpr (requires {
                      { codec.learns_received() } -> std::same_as<bool>;
                  })
        return codec.learns_received();
    else
        return LearnsReceived<Codec, View>;
}

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

/// A compressor with options that ranks must have alike besides codings (the seed of a mask): `fingerprint()` is their
/// hash, compared in each operation. Codecs that are bound alike have the same. How many entries a rank chooses need
/// not be alike.
template <class C>
concept FingerprintedCompressor = requires(const C& codec) {
    { codec.fingerprint() } -> std::convertible_to<std::uint64_t>;
};

/// A compressor whose type says which codings `codings()` can return: `possible_codings`, a `coding_set`. Others are
/// then neither compiled nor accepted.
template <class C>
concept KnownCodingsCompressor = requires {
    { C::possible_codings } -> std::convertible_to<coding_set>;
};

/// A compressor that can divide its work: `encode(input, executor)` returns what `encode(input)` does, bit for bit.
template <class C, class T, class Exec>
concept ParallelCompressor = Executor<Exec> && requires(C& codec, std::span<const T> input, const Exec& executor) {
    codec.encode(input, executor).range();
};

/// A compressor that multiplies each input from now on by a finite factor, in the pass that it makes anyway. A loop
/// that scales its steps thus saves a pass.
template <class C, class T>
concept ScalingCompressor = requires(C& codec, T factor) { codec.scale_inputs(factor); };

/// A compressor that keeps what it does not send, as error feedback does: `residual()` has `dimension()` entries. What
/// is sent and the residual add up to what was given.
template <class C>
concept ResidualCompressor = requires(const C& codec) { codec.residual()[0]; };

/// A compressor that chooses the same entries on all ranks, by the number of the operation alone: `encode` gives them
/// as a dense view, and `write_back(values, model)` puts as many values in their places and leaves all others.
template <class C, class T>
concept AlikeCompressor =
    Compressor<C, T> && C::chooses_alike &&
    requires(C& codec, std::span<const T> values, std::span<T> model) { codec.write_back(values, model); };

/// The hash of what all ranks must have alike in a codec; 0 where it does not say.
template <class Codec>
std::uint64_t fingerprint_of(const Codec& codec) {
    if constexpr (FingerprintedCompressor<Codec>)
        return codec.fingerprint();
    else
        return 0;
}

/// The codings that the frames of a codec may have; all of them where it does not say.
template <class Codec>
inline constexpr coding_set codings_of{};
/// The codings that a codec says it may have.
template <KnownCodingsCompressor Codec>
inline constexpr coding_set codings_of<Codec> = Codec::possible_codings;

/// Encodes with `executor` if the codec is a `ParallelCompressor`.
template <class Codec, class T, Executor Exec>
auto encode_with(Codec& codec, std::span<const T> input, const Exec& executor) {
    if constexpr (ParallelCompressor<Codec, T, Exec>)
        return codec.encode(input, executor);
    else
        return codec.encode(input);
}

}}  // namespace rill::RILL_ABI
