#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// How the control channel (`abort`, `announce`, `inquire`) of a simulated or a faulty network gets from rank to rank.
enum class control_plane : std::uint8_t {
    ideal,       ///< at once and always: it takes no time and passes cut links
    travelling,  ///< over the links, as messages do: see `simulated::network::control` and `fault_scene`
};

}}  // namespace rill::RILL_ABI
