#pragma once

#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/sgd.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `decoupled_decay` bound to one worker.
template <class Inner, std::floating_point T>
class bound_decoupled_decay {
  public:
    bound_decoupled_decay(Inner inner, double decay) : inner_(std::move(inner)), decay_(decay) {}

    const Inner& inner() const { return inner_; }

    void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
        shrink(parameters, rate);
        inner_.step(parameters, gradient, rate);
    }
    /// Shrinks all parameters, those without an entry too.
    template <IndexType Index>
    void step(std::span<T> parameters, const stream_view<T, Index>& gradient, double rate)
        requires StreamOptimizer<Inner, T, stream_view<T, Index>>
    {
        shrink(parameters, rate);
        inner_.step(parameters, gradient, rate);
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        inner_.save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        inner_.restore(in, prefix);
    }

  private:
    void shrink(std::span<T> parameters, double rate) const {
        const T kept = static_cast<T>(1 - rate * decay_);
        for (T& each : parameters) each *= kept;
    }

    Inner inner_;
    double decay_;
};

/// Weight decay that does not pass through the optimizer's moments: `w -= rate·decay·w`, then the optimizer's step.
///
/// Models `Optimizer`; `decoupled_decay{adam{}, 0.01}` is AdamW. In `compressed_bsp` the optimizer runs at rate 1, so
/// `decay` is there what all rates times the decay would be. Source: Loshchilov and Hutter, Decoupled Weight Decay
/// Regularization, ICLR 2019, Algorithms 1 and 2.
template <Optimizer Inner>
struct decoupled_decay {
    static constexpr const char* name = "decoupled_decay";
    static constexpr bool is_linear = Inner::is_linear;

    Inner optimizer{};
    double decay = 0;

    template <std::floating_point T = float>
    auto bind(std::size_t dimension) const {
        rill::detail::require_option(decay >= 0 && std::isfinite(static_cast<T>(decay)),
                                     "train::decoupled_decay: decay", decay,
                                     "at least 0 and finite in the type of the parameters");
        auto inner = optimizer.template bind<T>(dimension);
        return bound_decoupled_decay<decltype(inner), T>(std::move(inner), decay);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("optimizer", fingerprint_if_named(optimizer));
        visit("decay", decay);
    }
    friend constexpr bool operator==(const decoupled_decay&, const decoupled_decay&) = default;
};

template <class O>
decoupled_decay(O, double) -> decoupled_decay<O>;

static_assert(Optimizer<decoupled_decay<sgd>>);

}}}  // namespace rill::RILL_ABI::train
