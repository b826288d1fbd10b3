#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How far the models of all ranks are apart: √(1/P Σ ‖x_i − x̄‖²), where x̄ is the mean of all models, which it writes
/// to `mean`. For systems in which each rank has a model of its own, as in gossip.
///
/// Collective. All ranks get the same bits. Cost: an all-reduce of the model and one of a number. Errors: as in
/// `all_reduce`.
template <class Group, std::floating_point T>
double consensus_distance(Group& workers, std::span<const T> model, std::span<T> mean) {
    RILL_EXPECTS(model.size() == mean.size(), "consensus_distance: room for the mean of all models");
    all_reduce(workers, model, mean, aggregate::mean{});
    double squares = 0;
    for (std::size_t i = 0; i < model.size(); ++i) {
        const double apart = static_cast<double>(model[i]) - static_cast<double>(mean[i]);
        squares += apart * apart;
    }
    const std::span<double> sum(&squares, 1);
    all_reduce(workers, sum, sum);
    return std::sqrt(squares / workers.size());
}

}}}  // namespace rill::RILL_ABI::train
