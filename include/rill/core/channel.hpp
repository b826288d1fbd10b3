#pragma once

#include <rill/core/config.hpp>

#include <compare>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// The highest tag.
inline constexpr std::uint32_t last_tag = ~std::uint32_t{0};

/// Separates messages between the same two ranks: `context` is the group that they belong to, `tag` the operation in
/// it.
struct channel {
    std::uint64_t context = 0;
    std::uint32_t tag = 0;

    friend constexpr auto operator<=>(const channel&, const channel&) = default;
};

}}  // namespace rill::RILL_ABI
