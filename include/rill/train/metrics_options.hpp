#pragma once

#include <rill/core/config.hpp>

#include <string>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How the metrics of steps are written to a file.
struct metrics_options {
    std::string label{};  ///< unless empty, the first column of each line: the name of the run, or the rank
    bool append = false;  ///< goes on behind what the file holds, as after a restored checkpoint

    friend bool operator==(const metrics_options&, const metrics_options&) = default;
};

}}}  // namespace rill::RILL_ABI::train
