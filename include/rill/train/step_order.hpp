// In which order a rank moves its model along its gradient and mixes it with those of others.
#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/concept/regular.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/eigenvalues_above.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A policy that binds to a number of parameters, and then makes steps of calls of `move()` and `mix()`, which change
/// the model in place. `move` goes along the gradient at the model as it was when the step began.
///
/// `is_beside`, which may be left out: it mixes before it moves, and the mixing may run while the gradient is computed.
/// `mixes_all`: it needs whole models mixed, in each step, over a symmetric mixing that keeps its neighbours; then
/// `require_mixing(mixing, size, rank)` throws `contract_violation` unless the mixing suits.
template <class O, class T = float>
concept StepOrder = Regular<O> && requires(const O& policy, std::span<T> model, void (*change)()) {
    { O::name } -> std::convertible_to<const char*>;
    { O::mixes_all } -> std::convertible_to<bool>;
    { policy.template bind<T>(std::size_t{}) } -> std::copyable;
    policy.template bind<T>(std::size_t{}).step(model, change, change);
};

/// Moves, then mixes: what is mixed has the newest gradient in it.
struct mix_after {
    static constexpr const char* name = "mix_after";
    static constexpr bool mixes_all = false;

    template <std::floating_point T>
    static mix_after bind(std::size_t) {
        return {};
    }
    template <class T, class Move, class Mix>
    static void step(std::span<T>, Move&& move, Mix&& mix) {
        move();
        mix();
    }
    friend constexpr bool operator==(mix_after, mix_after) = default;
};

/// Mixes, then moves along the gradient at the model before: the gradient depends on no message of the step. Source:
/// D-PSGD (Lian et al. 2017), algorithm 1.
struct mix_before {
    static constexpr const char* name = "mix_before";
    static constexpr bool mixes_all = false;

    template <std::floating_point T>
    static mix_before bind(std::size_t) {
        return {};
    }
    template <class T, class Move, class Mix>
    static void step(std::span<T>, Move&& move, Mix&& mix) {
        mix();
        move();
    }
    friend constexpr bool operator==(mix_before, mix_before) = default;
};

/// `mix_before`, whose messages travel while the gradient is computed: for a `ConcurrentTransport`. The same bits; a
/// model more of memory.
struct mix_beside : mix_before {
    static constexpr const char* name = "mix_beside";
    static constexpr bool is_beside = true;

    template <std::floating_point T>
    static mix_before bind(std::size_t) {
        return {};
    }
    friend constexpr bool operator==(mix_beside, mix_beside) = default;
};

/// A `d_squared` bound to one rank's model.
template <std::floating_point T>
class bound_d_squared {
  public:
    explicit bound_d_squared(std::size_t dimension) : before_(dimension) {}

    template <class Move, class Mix>
    void step(std::span<T> model, Move&& move, Mix&& mix) {
        for (std::size_t i = 0; i < model.size(); ++i) before_[i] = has_begun_ != 0 ? model[i] - before_[i] : T{};
        move();
        for (std::size_t i = 0; i < model.size(); ++i) {
            const T moved = model[i];
            model[i] = moved + before_[i];
            before_[i] = moved;
        }
        has_begun_ = 1;
        mix();
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "d_squared.before", span_of(before_));
        out.add(std::string(prefix) + "d_squared.has_begun", std::span<const std::uint8_t>(&has_begun_, 1));
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        auto before = before_;
        auto has_begun = has_begun_;
        in.read(std::string(prefix) + "d_squared.before", span_of(before));
        in.read(std::string(prefix) + "d_squared.has_begun", std::span<std::uint8_t>(&has_begun, 1));
        before_.swap(before);
        has_begun_ = has_begun;
    }

  private:
    aligned_vector<T> before_;  ///< the model of the step before, moved and not mixed
    std::uint8_t has_begun_ = 0;
};

/// x' = W (2x - x₋ - γ g + γ₋ g₋), where x₋, γ₋ and g₋ are those of the step before: ranks whose data differ come to
/// the minimum of all, as they do with the mean of all gradients. Each gradient has the rate of its own step, so that
/// the mean of all models moves by γ times the mean of all gradients where the rate falls, too (the paper's is
/// constant). The eigenvalues of W must be above -⅓, as with `topology::ring_neighbours{.own = 0.5}`. Memory: one
/// model. Source: D² (Tang et al. 2018), algorithm 1.
struct d_squared {
    static constexpr const char* name = "d_squared";
    static constexpr bool mixes_all = true;

    template <std::floating_point T>
    static bound_d_squared<T> bind(std::size_t dimension) {
        return bound_d_squared<T>(dimension);
    }
    template <Mixing M>
    static void require_mixing(const M& mixing, int size, rank_t rank) {
        rill::detail::require_option(topology::eigenvalues_above(mixing, size, -1.0 / 3),
                                     "train::d_squared: the mixing", std::string_view(M::name),
                                     "one whose eigenvalues are above -1/3, such as ring_neighbours{.own = 0.5}", rank);
    }
    friend constexpr bool operator==(d_squared, d_squared) = default;
};

static_assert(StepOrder<mix_after> && StepOrder<mix_before> && StepOrder<mix_beside> && StepOrder<d_squared>);

}}}  // namespace rill::RILL_ABI::train
