#pragma once

#include <rill/core/coding.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/dense_switch.hpp>

#include <bit>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// How the frames of a collective on streams are written. All ranks must have the same.
struct stream_codings {
    coding contribution{};  ///< once, at the source
    coding partial{};       ///< of partial sums; lossless
    coding copy{};          ///< once, by the owner of a folded part, then forwarded verbatim
    dense_switch when{};

    constexpr std::uint64_t fingerprint() const {
        return mix64(contribution.fingerprint(), partial.fingerprint(), copy.fingerprint(),
                     std::bit_cast<std::uint64_t>(when.factor));
    }
    friend constexpr bool operator==(const stream_codings&, const stream_codings&) = default;
};

}}  // namespace rill::RILL_ABI
