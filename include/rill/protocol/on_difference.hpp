#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// What becomes of members whose state is not that of the majority.
enum class on_difference : std::uint8_t {
    end,  ///< training ends on all members
    mend  ///< they get the state of the majority
};

}}  // namespace rill::RILL_ABI
