#pragma once

#include "arguments.hpp"
#include "compositions.hpp"
#include "computing.hpp"
#include "stragglers.hpp"

#include <rill/cost/selection_frequency.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plan {

/// One line of the table; times in seconds.
struct row {
    std::string topology;
    compressor how;
    double select = 0;     ///< what a rank computes for its own gradient
    double computing = 0;  ///< and in all for the exchange: that, and coding and folding
    double exchange = 0;   ///< what the network takes
    double latency = 0;    ///< of which without any bytes
    double step = 0;
    double speed_up = 0;  ///< steps of all ranks together over those of one alone; 0 where no --compute is known
    std::uint64_t busiest_bytes = 0;
    std::uint64_t all_bytes = 0;

    std::string name() const { return topology + ", " + how.name; }
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

    /// The row of "topology, compressor"; throws `std::runtime_error` where there is none.
    const row& named(const std::string& name) const;
};

using frequencies = std::optional<rill::cost::selection_frequency>;

/// Counts what a rank would select of each gradient in the file, if there is one; throws `std::runtime_error` where it
/// holds no gradients of that size.
frequencies measure_overlap(const arguments& chosen);

forecast predict_all(const arguments& chosen, const frequencies& overlap, const computing_costs& costs, int ranks);

/// The seconds that a row's exchange takes in the simulated network, with random coordinates.
double simulate(const arguments& chosen, const row& which);

}  // namespace plan
