#pragma once

#include "arguments.hpp"

#include <cstddef>
#include <vector>

namespace plan {

/// What a rank computes for one way to exchange gradients.
struct computing_cost {
    double own = 0;       ///< seconds for its own gradient: selecting, and writing the result
    double per_byte = 0;  ///< seconds for coding, decoding and folding a byte of `bytes_in_a_row`
};

/// The costs of all ways, in the order of `for_each_way`.
struct computing_costs {
    std::vector<computing_cost> ways{};
    int ranks = 0;         ///< with so many it was measured; 0: all was given
    std::size_t size = 0;  ///< with so many parameters it was measured
};

/// What the arguments give, the rest measured: runs each way among a few ranks on this machine, in a simulated network
/// that takes no time. Takes about a second in an optimised build, and up to 100 MB.
computing_costs costs_of(const arguments& chosen);

}  // namespace plan
