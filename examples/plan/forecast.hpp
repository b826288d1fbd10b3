#pragma once

#include "arguments.hpp"
#include "stragglers.hpp"

#include <rill/cost/selection_frequency.hpp>
#include <rill/stream/stream_codings.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plan {

/// A way to send gradients.
struct compressor {
    const char* name = "";
    bool sparse = false;
    rill::stream_codings codings{};

    bool is_plain() const { return !sparse && codings.copy.is_lossless(); }
};

/// One line of the table; times in seconds.
struct row {
    std::string topology;
    compressor how;
    double exchange = 0;
    double latency = 0;  ///< of which without any bytes
    double step = 0;
    double speed_up = 0;  ///< over one rank alone; 0 where computing takes no time
    std::uint64_t busiest_bytes = 0;
    std::uint64_t all_bytes = 0;
};

/// All ways to exchange gradients among so many ranks.
struct forecast {
    int ranks = 0;
    waiting before{};
    double union_share = 0;  ///< of the coordinates: what all ranks select together
    std::vector<row> rows{};

    const row& best(bool compressed) const;  ///< of those that compress, or of those that do not

    /// How many times as fast a step becomes by compressing, and whether that pays: what compressing costs in accuracy
    /// and work is not worth a tenth.
    double gain() const { return best(false).step / best(true).step; }
    bool should_compress() const { return gain() >= 1.1; }
    const row& recommended() const { return best(should_compress()); }
};

using frequencies = std::optional<rill::cost::selection_frequency>;

/// Counts what a rank would select of each gradient in the file, if there is one; throws `std::runtime_error` where it
/// holds no gradients of that size.
frequencies measure_overlap(const arguments& chosen);

forecast predict_all(const arguments& chosen, const frequencies& overlap, int ranks);

/// The seconds that a row's exchange takes in the simulated network, with random coordinates.
double simulate(const arguments& chosen, const row& which);

}  // namespace plan
