#pragma once

#include <rill/core/coding.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/dense_switch.hpp>

#include <bit>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// How the frames of a collective on streams are coded; it must be the same on all ranks.
struct stream_codings {
    coding contribution{};  ///< of contributions: applied once, at the source
    coding partial{};       ///< of partial sums: lossless, and not the user's own
    coding copy{};          ///< of finished parts: applied once, by the owner, then forwarded verbatim
    dense_switch when{};    ///< judges sums in the coding `of_sums`

    /// The coding by which a sum is found to be smaller in the sparse or in the dense form: that of the copy phase if
    /// it is lossy, since finished sums make up most of the traffic; otherwise that of partial sums.
    constexpr const coding& of_sums() const { return copy.is_lossless() && !partial.is_view() ? partial : copy; }

    constexpr std::uint64_t fingerprint() const {
        return mix64(contribution.fingerprint(), partial.fingerprint(), copy.fingerprint(),
                     std::bit_cast<std::uint64_t>(when.factor));
    }
    friend constexpr bool operator==(const stream_codings&, const stream_codings&) = default;
};

}}  // namespace rill::RILL_ABI
