// The result of one training run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace demo {

/// The accuracy of the model after some steps.
struct milestone {
    std::uint64_t step = 0;
    double megabytes = 0;  ///< sent per rank so far, on average
    double accuracy = 0;   ///< on the test images
};

struct outcome {
    std::string name{};
    std::uint64_t steps = 0;
    std::uint64_t skipped = 0;
    double mean_bytes = 0;            ///< sent per rank and step
    std::uint64_t largest_bytes = 0;  ///< sent by any rank in any step
    double total_bytes = 0;           ///< sent by all ranks in all steps
    std::uint64_t parameters = 0;     ///< a hash of the bits of the final parameters
    double seconds = 0;               ///< of training, without the evaluations
    std::vector<milestone> curve{};

    double accuracy() const { return curve.back().accuracy; }
};

}  // namespace demo
