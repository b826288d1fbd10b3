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
    coding partial{};       ///< of partial sums: lossless
    coding copy{};          ///< of finished parts: applied once, by the owner, then forwarded verbatim
    dense_switch when{};

    constexpr std::uint64_t fingerprint() const {
        return mix64(contribution.fingerprint(), partial.fingerprint(), copy.fingerprint(),
                     std::bit_cast<std::uint64_t>(when.factor));
    }
    friend constexpr bool operator==(const stream_codings&, const stream_codings&) = default;
};

}}  // namespace rill::RILL_ABI
