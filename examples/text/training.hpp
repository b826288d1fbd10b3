#pragma once

#include "arguments.hpp"

#include <rill/train/sparse_dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace text {

/// The samples of each rank.
struct samples {
    std::vector<rill::train::sparse_dataset> train{};
    std::vector<rill::train::sparse_dataset> held_out{};
    std::size_t columns = 0;   ///< of all of them
    std::size_t rows = 0;      ///< to train on, of all ranks
    std::size_t unseen = 0;    ///< held out, of all ranks
    std::size_t positive = 0;  ///< those of them with a label above 0
};

/// Each rank reads its own part of both files. Throws `rill::train::data_error`.
samples read_samples(const arguments& chosen);

/// The state of a run after some steps.
struct milestone {
    std::uint64_t step = 0;
    double seconds = 0;    ///< of training
    double loss = 0;       ///< mean of all ranks' batches since the last milestone
    double accuracy = 0;   ///< on the held-out samples
    double megabytes = 0;  ///< sent per rank so far, on average
};

struct outcome {
    std::string name{};
    std::vector<milestone> curve{};

    const milestone& end() const { return curve.back(); }
};

/// Makes one of `arguments::runs`.
outcome fit(const std::string& run, const arguments& chosen, const samples& data);

}  // namespace text
