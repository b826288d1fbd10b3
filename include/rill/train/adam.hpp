#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/train/optimizer.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace train {

template <std::floating_point T>
class bound_adam;

/// Adam: `m = beta1·m + (1 - beta1)·g; v = beta2·v + (1 - beta2)·g²; w -= rate·m̂ / (√v̂ + epsilon)`, where m̂ and v̂
/// are m and v divided by `1 - beta^t` in step t.
///
/// A gradient whose square overflows stops its parameter for good; `clip_value` before it keeps that from happening.
/// Models `Optimizer`. AdamW is `decoupled_decay{adam{}, decay}`. Memory: two values for each parameter. Source: Kingma
/// and Ba, Adam, ICLR 2015, Algorithm 1.
struct adam {
    static constexpr const char* name = "adam";
    static constexpr bool is_linear = false;

    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;

    template <std::floating_point T = float>
    bound_adam<T> bind(std::size_t dimension) const {
        rill::detail::require_option(beta1 >= 0 && static_cast<T>(beta1) < 1, "train::adam: beta1", beta1,
                                     "in [0, 1) in the type of the parameters");
        rill::detail::require_option(beta2 >= 0 && static_cast<T>(beta2) < 1, "train::adam: beta2", beta2,
                                     "in [0, 1) in the type of the parameters");
        rill::detail::require_option(static_cast<T>(epsilon) > 0 && std::isfinite(static_cast<T>(epsilon)),
                                     "train::adam: epsilon", epsilon,
                                     "above 0 and finite in the type of the parameters");
        return bound_adam<T>(*this, dimension);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("beta1", beta1);
        visit("beta2", beta2);
        visit("epsilon", epsilon);
    }
    friend constexpr bool operator==(const adam&, const adam&) = default;
};

/// One worker's `adam`: the policy and the moments of each parameter.
template <std::floating_point T>
class bound_adam {
  public:
    bound_adam(const adam& policy, std::size_t dimension)
        : policy_(policy), dimension_(dimension), moments_(2 * dimension, T{0}) {}

    const adam& policy() const { return policy_; }

    /// Coordinate-wise and in place; allocates nothing.
    void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
        RILL_EXPECTS(parameters.size() == dimension_ && gradient.size() == dimension_, "adam: bound to this dimension");
        powers_[0] *= policy_.beta1;
        powers_[1] *= policy_.beta2;
        move(parameters.data(), gradient.data(), moments_.data(), moments_.data() + dimension_,
             static_cast<T>(rate / (1 - powers_[0])), static_cast<T>(1 / (1 - powers_[1])));
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "powers", powers_);
        out.add(std::string(prefix) + "moments", moments_);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        auto powers = powers_;
        in.read(std::string(prefix) + "powers", powers);
        in.read(std::string(prefix) + "moments", moments_);
        powers_ = powers;
    }

  private:
    /// No two of the arrays overlap.
    void move(T* __restrict parameters, const T* __restrict gradient, T* __restrict mean, T* __restrict square, T rate,
              T unbias) const {
        const T beta1 = static_cast<T>(policy_.beta1), beta2 = static_cast<T>(policy_.beta2),
                epsilon = static_cast<T>(policy_.epsilon);
        for (std::size_t i = 0; i < dimension_; ++i) {
            const T slope = gradient[i];
            mean[i] = beta1 * mean[i] + (1 - beta1) * slope;
            square[i] = beta2 * square[i] + (1 - beta2) * (slope * slope);
            parameters[i] -= rate * mean[i] / (std::sqrt(unbias * square[i]) + epsilon);
        }
    }

    adam policy_;
    std::size_t dimension_;
    std::array<double, 2> powers_{1, 1};  ///< beta1 and beta2 to the number of steps
    aligned_vector<T> moments_;           ///< the means of the gradients, then those of their squares
};

static_assert(Optimizer<adam>);

}}}  // namespace rill::RILL_ABI::train
