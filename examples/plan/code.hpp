#pragma once

#include "forecast.hpp"

#include <string>

namespace plan {

/// The C++ of a way to exchange gradients, to paste: `net` is a rank's endpoint, `gradient` and `update` are vectors of
/// floats.
std::string code_of(const row& which, double density);

/// The C++ of a training whose steps go on without the slowest: `objective` and `batches` are what a trainer takes.
std::string code_of_rounds(int left_out);

/// The C++ of a training by partial rounds, whose policies are written as `--trigger` and `--staleness` are.
std::string code_of_partial(const std::string& trigger, const std::string& staleness, const std::string& topology);

/// The C++ of a training with a gradient code, on the dataset `data`.
std::string code_of_coded(int width, int depth, int stragglers);

/// The C++ of a gossip over links of `least` bytes per second or more, which are measured; `descend` moves `model`.
std::string code_of_gossip(double least, double density);

}  // namespace plan
