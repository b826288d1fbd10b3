#pragma once

#include "arguments.hpp"

#include <rill/transport/compute_times.hpp>

namespace plan {

/// The computing times of the ranks before they exchange gradients, in seconds.
struct waiting {
    double alone = 0;    ///< a rank by itself, in the mean
    double slowest = 0;  ///< the slowest of all, in the mean over steps
    int left_out = 0;    ///< a tenth of the ranks, at least one
    double others = 0;   ///< the slowest where that many are not waited for, in the mean over steps
};

/// The model that `--stragglers` names; throws `wrong_argument` where it names none.
rill::compute_model compute_model_of(const arguments& chosen);

/// Computes the times by the model that `--stragglers` names; throws `wrong_argument` where it names none.
waiting wait_for(const arguments& chosen, int ranks);

/// The share TAIL of `--stragglers exponential:TAIL`; throws `wrong_argument` for every other model.
double exponential_share(const arguments& chosen);

}  // namespace plan
