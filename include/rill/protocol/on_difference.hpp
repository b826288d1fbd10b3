#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// What becomes of members of a view whose state is not that of the majority. Without a majority training ends.
enum class on_difference : std::uint8_t {
    end,  ///< training ends on all members
    mend  ///< they get the state of the majority, for which the others wait, within the timeout
};

}}  // namespace rill::RILL_ABI
