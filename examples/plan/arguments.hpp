#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace plan {

/// A value that an option does not take.
struct wrong_argument : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct arguments {
    int ranks = 1000;
    double bandwidth = 125e6;  ///< bytes per second of a rank's card
    double latency = 50e-6;    ///< seconds
    std::size_t model_size = 25'000'000;
    double density = 0.01;
    std::string gradients;         ///< file; empty: the density is uniform
    double compute = 0;            ///< seconds of a step's own work, the mean
    std::optional<double> select;  ///< seconds that choosing what to send takes; measured where not given
    std::optional<double> fold;    ///< bytes a second that a rank codes, decodes and folds; measured where not given
    std::string stragglers = "none";
    std::uint64_t seed = 1;
    std::string code;     ///< the row whose C++ is printed, as "topology, compressor"; empty: the one that is advised
    std::string trigger;  ///< of partial rounds; empty: none are planned
    std::string staleness = "bounded:16";  ///< of partial rounds
    std::string csv;
    std::string svg;
    bool verify = false;
    bool coded = false;
    bool gossip = false;
    std::string links;  ///< file of the links' speeds; empty: random ones of up to `bandwidth`
};

/// Reads the command line. Prints the help or an error, and ends the program, where there is nothing to do.
arguments read_arguments(int argc, char** argv);

}  // namespace plan
