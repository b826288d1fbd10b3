#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace demo {

struct arguments {
    int ranks = 8;
    std::size_t batch = 32;
    std::uint64_t epochs = 5;
    std::uint64_t steps = 0;  ///< 0: as many as the epochs need
    double density = 0.01;
    int bits = 4;
    int source_bits = 0;     ///< 0: values as they are
    std::size_t bucket = 0;  ///< 0: the largest of all entries
    std::size_t keep = 0;
    double momentum = 0.7;
    std::string topology = "split_allgather";  ///< of both runs; "auto": each takes what is measured to be the fastest
    std::uint64_t seed = 1;
    std::string transport = "in_process";
    std::string data = "/usr/share/datasets/fashion-mnist";
    std::string json = "build/demo/demo.json";
    std::string picture = "build/demo/demo.svg";
    bool quick = false;
    bool elastic = false;
};

/// Reads the command line. Prints the help or an error, and ends the program, where there is nothing to run.
arguments read_arguments(int argc, char** argv);

}  // namespace demo
