#pragma once

#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/dense_switch.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// How the frames of a collective on streams are coded; it must be the same on all ranks.
struct stream_codings {
    coding contribution{};  ///< of contributions: applied once, at the source
    coding partial{};       ///< of partial sums: their values are raw
    coding copy{};          ///< of finished parts: applied once, by the owner, then forwarded verbatim
    dense_switch when{};    ///< judges sums in the coding `of_sums`
    /// A part of a contribution is cut into pieces of about so many entries, and the sum of a part into pieces of four
    /// times as many, at most 16 each, if the topology folds parts at their owners. Where the transport asks for chunks
    /// of dense vectors, pieces travel by themselves: one is coded and folded while others travel. 0: never. Where
    /// codings round, the bits depend on it.
    std::size_t message_entries = 4'096;

    /// The coding by which a sum is found to be smaller in the sparse or in the dense form: that of the copy phase if
    /// it is lossy, since finished sums make up most of the traffic; otherwise that of partial sums.
    constexpr const coding& of_sums() const { return copy.is_lossless() && !partial.is_view() ? partial : copy; }

    constexpr std::uint64_t fingerprint() const {
        std::uint64_t hash = contribution.fingerprint();
        for (const std::uint64_t next : {partial.fingerprint(), copy.fingerprint(),
                                         std::bit_cast<std::uint64_t>(when.factor), std::uint64_t{message_entries}})
            hash = mix64(hash, next);
        return hash;
    }
    friend constexpr bool operator==(const stream_codings&, const stream_codings&) = default;
};

namespace detail {
/// Sums are sent on and folded further, so rounding would count several times.
inline void require_raw_sums(const stream_codings& codings) {
    RILL_EXPECTS(is_lossless(codings.partial.values), "stream_codings: partial sums travel with raw values");
}
}  // namespace detail

}}  // namespace rill::RILL_ABI
