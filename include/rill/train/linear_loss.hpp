// Losses of a linear model: functions of its score and the sample's label.
#pragma once

#include <rill/core/config.hpp>

#include <cmath>
#include <concepts>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A convex function of a score: `value(score, label)`, and `slope(score, label)`, its derivative by the score, or one
/// of its derivatives where it has a kink.
///
/// `is_classifier`: a label says which of two classes a sample is of, and a score above 0 stands for the second.
template <class L>
concept LinearLoss = requires(double score, float label) {
    { L::value(score, label) } -> std::same_as<double>;
    { L::slope(score, label) } -> std::same_as<double>;
    { L::slope(float{}, label) } -> std::same_as<float>;
    requires std::same_as<decltype(L::is_classifier), const bool>;
    { L::name } -> std::convertible_to<const char*>;
};

/// A loss that has a slope everywhere. `curvature`: no second derivative is larger.
template <class L>
concept SmoothLoss = LinearLoss<L> && std::same_as<decltype(L::curvature), const double>;

namespace detail {
/// Labels of two classes are 1 and -1, or 1 and 0.
template <std::floating_point T>
constexpr T sign_of(float label) {
    return label > 0 ? T{1} : T{-1};
}
}  // namespace detail

/// `log(1 + exp(-y·score))`, where y is 1 for a label above 0, else -1.
struct logistic {
    static constexpr const char* name = "logistic";
    static constexpr bool is_classifier = true;
    static constexpr double curvature = 0.25;

    /// Without overflow of the exponential. A NaN gives NaN.
    template <std::floating_point T>
    static double value(T score, float label) {
        const double m = static_cast<double>(detail::sign_of<T>(label) * score);
        return (m < 0 ? -m : 0.0) + std::log1p(std::exp(-std::abs(m)));
    }
    template <std::floating_point T>
    static T slope(T score, float label) {
        const T y = detail::sign_of<T>(label);
        return -y / (T{1} + std::exp(y * score));
    }
};

/// `max(0, 1 - y·score)`, where y is 1 for a label above 0, else -1: the loss of a support vector machine. Samples
/// beyond the margin have slope 0.
struct hinge {
    static constexpr const char* name = "hinge";
    static constexpr bool is_classifier = true;

    template <std::floating_point T>
    static double value(T score, float label) {
        const T distance = T{1} - detail::sign_of<T>(label) * score;
        return distance <= 0 ? 0.0 : static_cast<double>(distance);  // a NaN stays
    }
    template <std::floating_point T>
    static T slope(T score, float label) {
        const T y = detail::sign_of<T>(label);
        return y * score >= T{1} ? T{0} : std::isnan(score) ? score : -y;
    }
};

/// `½ (score - label)²`.
struct squared {
    static constexpr const char* name = "squared";
    static constexpr bool is_classifier = false;
    static constexpr double curvature = 1;

    template <std::floating_point T>
    static double value(T score, float label) {
        const double distance = static_cast<double>(score) - static_cast<double>(label);
        return 0.5 * distance * distance;
    }
    template <std::floating_point T>
    static T slope(T score, float label) {
        return score - static_cast<T>(label);
    }
};

static_assert(SmoothLoss<logistic> && LinearLoss<hinge> && SmoothLoss<squared>);

}}}  // namespace rill::RILL_ABI::train
