#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rill::inline RILL_ABI::train {

template <std::floating_point T>
class bound_sgd;

/// Stochastic gradient descent, with momentum where `momentum > 0`:
/// `g += weight_decay·w; v = momentum·v + g; w -= rate·v`, or `w -= rate·(g + momentum·v)` after Nesterov.
struct sgd {
    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;

    template <std::floating_point T = float>
    bound_sgd<T> bind(std::size_t dimension) const {
        RILL_EXPECTS(momentum >= 0 && momentum < 1, "sgd: momentum in [0, 1)");
        RILL_EXPECTS(weight_decay >= 0, "sgd: no negative weight decay");
        RILL_EXPECTS(!nesterov || momentum > 0, "sgd: Nesterov's step needs momentum");
        return bound_sgd<T>(*this, dimension);
    }
    friend constexpr bool operator==(const sgd&, const sgd&) = default;
};

/// One worker's optimizer: the policy and the velocity of each parameter. Without momentum there is no velocity.
template <std::floating_point T>
class bound_sgd {
  public:
    bound_sgd(const sgd& policy, std::size_t dimension)
        : policy_(policy), dimension_(dimension), velocity_(policy.momentum > 0 ? dimension : 0, T{0}) {}

    const sgd& policy() const { return policy_; }
    std::span<const T> velocity() const { return velocity_; }

    /// Coordinate-wise and in place; allocates nothing.
    void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
        RILL_EXPECTS(parameters.size() == dimension_ && gradient.size() == dimension_, "sgd: bound to this dimension");
        const T scale = static_cast<T>(rate), decay = static_cast<T>(policy_.weight_decay);
        if (policy_.momentum > 0) return accelerate(parameters, gradient, scale, decay);
        for (std::size_t i = 0; i < dimension_; ++i) parameters[i] -= scale * (gradient[i] + decay * parameters[i]);
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "velocity", velocity_);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        in.read(std::string(prefix) + "velocity", velocity_);
    }

  private:
    void accelerate(std::span<T> parameters, std::span<const T> gradient, T scale, T decay) {
        const T momentum = static_cast<T>(policy_.momentum);
        const bool nesterov = policy_.nesterov;
        for (std::size_t i = 0; i < dimension_; ++i) {
            const T slope = gradient[i] + decay * parameters[i];
            velocity_[i] = momentum * velocity_[i] + slope;
            parameters[i] -= scale * (nesterov ? slope + momentum * velocity_[i] : velocity_[i]);
        }
    }

    sgd policy_;
    std::size_t dimension_;
    aligned_vector<T> velocity_;
};

}  // namespace rill::inline RILL_ABI::train
