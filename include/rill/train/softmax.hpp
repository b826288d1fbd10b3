#pragma once

#include <rill/core/config.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The cross-entropy `-log softmax(scores)[label]`. A NaN or infinity among the scores gives NaN or infinity.
template <std::floating_point T>
double softmax_loss(std::span<const T> scores, std::size_t label) {
    const T highest = *std::max_element(scores.begin(), scores.end());
    T sum = 0;
    for (T score : scores) sum += std::exp(score - highest);
    return std::log(static_cast<double>(sum)) - static_cast<double>(scores[label] - highest);
}

/// Returns the loss that `softmax_loss` gives, and replaces the scores by `scale` times its derivatives by the scores.
template <std::floating_point T>
double softmax_gradient(std::span<T> scores, std::size_t label, T scale) {
    const T highest = *std::max_element(scores.begin(), scores.end());
    const double distance = static_cast<double>(scores[label] - highest);
    T sum = 0;
    for (T& score : scores) sum += score = std::exp(score - highest);
    for (T& score : scores) score *= scale / sum;
    scores[label] -= scale;
    return std::log(static_cast<double>(sum)) - distance;
}

/// The class with the highest score, the first of several.
template <std::floating_point T>
std::int32_t best_class(std::span<const T> scores) {
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

}}}  // namespace rill::RILL_ABI::train
