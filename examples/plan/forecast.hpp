#pragma once

#include "arguments.hpp"
#include "compositions.hpp"
#include "computing.hpp"
#include "stragglers.hpp"

#include <rill/cost/selection_frequency.hpp>

#include <cstddef>
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

/// The predictions for all ways to exchange gradients among `ranks` ranks.
struct forecast {
    int ranks = 0;
    waiting before{};
    double union_share = 0;  ///< share of the coordinates that at least one rank selects
    std::vector<row> rows{};

    const row& best(bool compressed) const;  ///< the best row that compresses, or that does not

    /// How many times faster a step is with compression. Compression pays only for a gain of a tenth or more, because
    /// it costs accuracy and work.
    double gain() const { return best(false).step / best(true).step; }
    bool should_compress() const { return gain() >= 1.1; }
    const row& recommended() const { return best(should_compress()); }

    /// The row of "topology, compressor"; throws `wrong_argument` where there is none.
    const row& named(const std::string& name) const;
};

/// Throws `wrong_argument` where no row has the name that --code gives.
void require_row(const std::string& name);

using frequencies = std::optional<rill::cost::selection_frequency>;

/// Counts the entries that a rank would select of each gradient in the file, if a file is given; throws
/// `std::runtime_error` where it holds no gradients of the model's size.
frequencies measure_overlap(const arguments& chosen);

/// How many of the model's entries a rank sends by `top_k` with the chosen density.
std::size_t entries_sent(const arguments& chosen);

forecast predict_all(const arguments& chosen, const frequencies& overlap, const computing_costs& costs, int ranks);

/// Runs a row's exchange in the simulated network, where each rank sends `entries_sent` random coordinates; returns its
/// seconds.
double simulate(const arguments& chosen, const row& which);

}  // namespace plan
