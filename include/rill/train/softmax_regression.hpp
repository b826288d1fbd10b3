#pragma once

#include <rill/concept/objective.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/train/perceptron.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Multinomial logistic regression: a perceptron without hidden layers, whose loss is convex.
template <std::floating_point T = float>
class softmax_regression : public perceptron<T> {
  public:
    softmax_regression(std::size_t columns, std::size_t classes) : perceptron<T>({columns, classes}) {}

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == this->dimension(), "softmax_regression: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }
};

static_assert(Classifier<softmax_regression<float>>);

}}}  // namespace rill::RILL_ABI::train
