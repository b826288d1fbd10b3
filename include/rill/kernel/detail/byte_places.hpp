// A table of the places of the set bits of a byte.
#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// For each byte, the places of its set bits, the lowest first. The numbers are as wide as most indices, so that no
/// instruction set must widen them. 8 KiB.
struct byte_places {
    std::uint32_t of[256][8] = {};

    constexpr byte_places() {
        for (unsigned byte = 0; byte < 256; ++byte)
            for (unsigned bit = 0, n = 0; byte >> bit != 0; ++bit)
                if ((byte >> bit & 1U) != 0) of[byte][n++] = bit;
    }
};
inline constexpr byte_places places_in_byte;

}}}  // namespace rill::RILL_ABI::kernel::detail
