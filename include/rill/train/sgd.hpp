#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/train/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace train {

template <std::floating_point T>
class bound_sgd;

/// Stochastic gradient descent, with momentum where `momentum > 0`:
/// `g += weight_decay·w; v = momentum·v + g; w -= rate·v`, or `w -= rate·(g + momentum·v)` after Nesterov.
///
/// Models `Optimizer`. For weight decay that stays out of the velocity see `decoupled_decay`. Memory: one value for
/// each parameter, and none without momentum.
struct sgd {
    static constexpr const char* name = "sgd";
    static constexpr bool is_linear = true;

    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;

    template <std::floating_point T = float>
    bound_sgd<T> bind(std::size_t dimension) const {
        rill::detail::require_option(momentum >= 0 && static_cast<T>(momentum) < 1, "train::sgd: momentum", momentum,
                                     "in [0, 1) in the type of the parameters");
        rill::detail::require_option(weight_decay >= 0 && std::isfinite(static_cast<T>(weight_decay)),
                                     "train::sgd: weight_decay", weight_decay,
                                     "at least 0 and finite in the type of the parameters");
        rill::detail::require_option(!nesterov || momentum > 0, "train::sgd: momentum", momentum,
                                     "above 0 where nesterov is set");
        return bound_sgd<T>(*this, dimension);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("momentum", momentum);
        visit("weight_decay", weight_decay);
        visit("nesterov", nesterov);
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
        const scales by = scales_at(rate);
        std::size_t i = 0;
        for (; i + block <= dimension_; i += block) move<block>(&parameters[i], &gradient[i], i, by);
        for (; i < dimension_; ++i) move<1>(&parameters[i], &gradient[i], i, by);
    }

    /// A step along a gradient that is 0 where the stream has no entry. Without momentum and weight decay it touches
    /// only the parameters that have an entry.
    template <IndexType Index>
    void step(std::span<T> parameters, const stream_view<T, Index>& gradient, double rate) {
        if (gradient.is_dense()) return step(parameters, gradient.values(), rate);
        RILL_EXPECTS(parameters.size() == dimension_ && gradient.range().size() == dimension_,
                     "sgd: bound to this dimension");
        const scales by = scales_at(rate);
        if (by.momentum == 0 && by.decay == 0)
            for (std::size_t e = 0; e < gradient.count(); ++e)
                parameters[gradient.indices()[e]] -= by.rate * gradient.values()[e];
        else
            move_by_blocks(parameters, gradient, by);
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
    static constexpr std::size_t block = kernel::detail::block;

    struct scales {
        T rate, decay, momentum;
        bool nesterov;
    };
    scales scales_at(double rate) const {
        return {static_cast<T>(rate), static_cast<T>(policy_.weight_decay), static_cast<T>(policy_.momentum),
                policy_.nesterov};
    }

    /// Moves `Count` coordinates from `first` on. No two of the arrays overlap.
    template <std::size_t Count>
    void move(T* __restrict parameters, const T* __restrict gradient, std::size_t first, const scales& by) {
        if (by.momentum == 0)
            for (std::size_t j = 0; j < Count; ++j) parameters[j] -= by.rate * (gradient[j] + by.decay * parameters[j]);
        else if (by.nesterov)
            accelerate<Count, true>(parameters, gradient, &velocity_[first], by);
        else
            accelerate<Count, false>(parameters, gradient, &velocity_[first], by);
    }

    template <std::size_t Count, bool nesterov>
    static void accelerate(T* __restrict parameters, const T* __restrict gradient, T* __restrict velocity, scales by) {
        for (std::size_t j = 0; j < Count; ++j) {
            const T slope = gradient[j] + by.decay * parameters[j];
            velocity[j] = by.momentum * velocity[j] + slope;
            parameters[j] -= by.rate * (nesterov ? slope + by.momentum * velocity[j] : velocity[j]);
        }
    }

    /// Moves all coordinates block by block; the entries of the stream are first spread into a block of zeros.
    template <IndexType Index>
    void move_by_blocks(std::span<T> parameters, const stream_view<T, Index>& gradient, const scales& by) {
        T dense[block] = {};
        const auto indices = gradient.indices();
        std::size_t entry = 0;
        for (std::size_t i = 0; i < dimension_; i += block) {
            const std::size_t end = std::min(i + block, dimension_), first = entry;
            for (; entry < indices.size() && indices[entry] < end; ++entry)
                dense[indices[entry] - i] = gradient.values()[entry];
            if (end - i == block)
                move<block>(&parameters[i], dense, i, by);
            else
                for (std::size_t j = i; j < end; ++j) move<1>(&parameters[j], &dense[j - i], j, by);
            for (std::size_t e = first; e < entry; ++e) dense[indices[e] - i] = T{0};
        }
    }

    sgd policy_;
    std::size_t dimension_;
    aligned_vector<T> velocity_;
};

static_assert(Optimizer<sgd>);

}}}  // namespace rill::RILL_ABI::train
