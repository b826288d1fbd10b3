#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace text {

struct arguments {
    std::string train = "build/text/train.libsvm";
    std::string held_out = "build/text/held_out.libsvm";
    std::vector<std::string> runs{"sparse", "late"};
    int ranks = 8;
    std::size_t batch = 1000;  ///< rows per rank and step
    std::uint64_t epochs = 1;
    std::uint64_t steps = 0;  ///< 0: as many as the epochs need
    double rate = 0.5;        ///< peak
    std::uint64_t seed = 1;
    std::string json = "build/text/linear.json";
    std::string picture = "build/text/linear.svg";
};

/// Reads the command line. Prints the help or an error, and ends the program, where there is nothing to run.
arguments read_arguments(int argc, char** argv);

}  // namespace text
