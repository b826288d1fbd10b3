#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// What an elastic team does if a member's state differs from the majority's. Without a majority training ends.
enum class on_difference : std::uint8_t {
    end,  ///< all members get `mismatch`
    mend  ///< that member gets the majority's state; the others wait for it, within the timeout
};

}}  // namespace rill::RILL_ABI
