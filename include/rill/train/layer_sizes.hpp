#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How many parameters each layer has.
inline std::vector<std::size_t> layer_sizes(std::span<const layer> layers) {
    std::vector<std::size_t> sizes;
    sizes.reserve(layers.size());
    for (const layer& each : layers) sizes.push_back(each.part.size());
    return sizes;
}

}}}  // namespace rill::RILL_ABI::train
