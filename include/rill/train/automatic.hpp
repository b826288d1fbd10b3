#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/cost/choose.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/strategy.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

using saved_costs = std::array<std::uint64_t, cost::detail::measured_figures>;

inline saved_costs numbers_of(const cost::measured_costs& costs) {
    saved_costs numbers{};
    cost::detail::visit_figures(costs, [&, i = std::size_t{0}]<class Figure>(const Figure& figure) mutable {
        if constexpr (std::floating_point<Figure>)
            numbers[i++] = std::bit_cast<std::uint64_t>(figure);
        else
            numbers[i++] = static_cast<std::uint64_t>(figure);
    });
    return numbers;
}
inline cost::measured_costs costs_of(const saved_costs& numbers) {
    cost::measured_costs costs;
    cost::detail::visit_figures(costs, [&, i = std::size_t{0}]<class Figure>(Figure& figure) mutable {
        if constexpr (std::floating_point<Figure>)
            figure = std::bit_cast<Figure>(numbers[i++]);
        else
            figure = static_cast<Figure>(numbers[i++]);
    });
    return costs;
}

/// A callable that can be assigned, as a strategy must be. A lambda with captures cannot.
template <class Call>
class assignable {
  public:
    explicit assignable(Call call) : held_(std::move(call)) {}
    assignable(const assignable&) = default;
    assignable& operator=(const assignable& other) {
        if (this == &other) return *this;
        held_.reset();
        held_.emplace(*other.held_);
        return *this;
    }
    ~assignable() = default;

    const Call& operator*() const { return *held_; }

  private:
    std::optional<Call> held_;
};

}  // namespace detail

/// The state of the strategy that an `automatic` has made, and the choice that it was made for. A copy is a state of
/// its own.
template <class State>
class automatic_state {
  public:
    automatic_state(State& of, const cost::exchange_choice& choice) : of_(&of), choice_(&choice) {}
    automatic_state(const automatic_state& other) : own_(*other.of_), of_(&*own_), choice_(other.choice_) {}
    automatic_state& operator=(const automatic_state& other) {
        if (this != &other) *of_ = *other.of_;
        return *this;
    }
    automatic_state& operator=(automatic_state&& other) noexcept(std::is_nothrow_move_assignable_v<State>) {
        if (this != &other) *of_ = std::move(*other.of_);
        return *this;
    }
    ~automatic_state() = default;

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        const std::string name = std::string(prefix) + "automatic.", text = choice_->composition();
        out.add(name + "choice", text);
        out.add(name + "fingerprint", choice_->fingerprint());
        out.add(name + "costs", detail::numbers_of(choice_->costs));
        of_->save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name = std::string(prefix) + "automatic.";
        std::string saved(in.count(name + "choice"), ' ');
        std::uint64_t fingerprint = 0;
        in.read(name + "choice", saved);
        in.read(name + "fingerprint", std::span(&fingerprint, 1));
        if (fingerprint != choice_->fingerprint())
            throw data_error(in.path(), "section \"" + name + "choice\"",
                             choice_->composition() + ", as this run has chosen (choose by cost::choose(" +
                                 "train::costs_in(checkpoint, prefix), gradient) to go on)",
                             saved);
        of_->restore(in, prefix);
    }

  private:
    std::optional<State> own_;
    State* of_;
    const cost::exchange_choice* choice_;
};

/// The figures by which the `automatic` strategy of a saved trainer chose. `cost::choose` makes the same choice from
/// them for the same gradients, dimension included.
template <class Reader>
cost::measured_costs costs_in(const Reader& in, std::string_view prefix) {
    detail::saved_costs numbers{};
    in.read(std::string(prefix) + "automatic.costs", numbers);
    return detail::costs_of(numbers);
}

/// An `automatic` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_automatic {
    using bound_type = decltype(std::declval<const typename Policy::strategy_type&>().template bind<T>(
        std::declval<Net&>(), std::span<const layer>(), group_options{}));

  public:
    bound_automatic(Net& net, const Policy& policy, std::span<const layer> layers, const group_options& options)
        : choice_(policy.choose(net, dimension_of(layers), options)),
          composition_(choice_.composition()),
          bound_(policy.make(choice_).template bind<T>(net, layers, options)) {}
    bound_automatic(const bound_automatic&) = delete;
    bound_automatic& operator=(const bound_automatic&) = delete;
    ~bound_automatic() = default;

    const cost::exchange_choice& choice() const { return choice_; }
    /// The strategy that was made for the choice, bound.
    auto& chosen() { return bound_; }
    const auto& chosen() const { return bound_; }
    auto& workers() { return bound_.workers(); }
    void require_same_start(byte_view parameters)
        requires requires(bound_type& bound) { bound.require_same_start(parameters); }
    {
        bound_.require_same_start(parameters);
    }

    template <class Gradient, class Compute>
    step_record step(std::span<T> parameters, Gradient&& gradient, std::uint64_t number, Compute&& compute) {
        step_record record = bound_.step(parameters, gradient, number, compute);
        record.choice = composition_;
        return record;
    }
    void end() { bound_.end(); }
    bool contributes() const { return bound_.contributes(); }
    auto& state() { return state_; }
    const auto& state() const { return state_; }
    std::uint64_t position() const { return bound_.position(); }
    void resume_at(std::uint64_t position) { bound_.resume_at(position); }
    void add_up(std::span<std::int64_t> table) { bound_.add_up(table); }

  private:
    cost::exchange_choice choice_;
    std::string composition_;
    bound_type bound_;
    automatic_state<std::remove_cvref_t<decltype(std::declval<bound_type&>().state())>> state_{bound_.state(), choice_};
};

/// A strategy whose exchange is chosen by measurement.
///
/// `make(choice)` returns the strategy for a `cost::exchange_choice`: one type for all choices, such as `bsp`,
/// `sparse_bsp` or `compressed_bsp` over `choice.topology`, with `choice.codings` (`compress::with_codings`). Binding
/// is collective: it measures once (`cost::choose`), for gradients of the model's dimension, so that all ranks make the
/// same strategy. With a choice that is given, nothing is measured.
///
/// The records of its steps tell the choice. A checkpoint goes on only under the choice under which it was saved; else
/// it is refused. Since another run may measure otherwise, give such a run `cost::choose(costs_in(checkpoint, prefix),
/// gradient)`, where `gradient.dimension` is the model's.
///
/// Models `Strategy`. Cost per step and determinism: those of the strategy that is made. Errors: those of
/// `cost::choose` when it is bound.
template <class Make>
class automatic {
  public:
    using strategy_type = std::remove_cvref_t<std::invoke_result_t<const Make&, const cost::exchange_choice&>>;

    static constexpr bool replicas_equal = strategy_type::replicas_equal;
    static constexpr bool is_layered = strategy_type::is_layered;
    static constexpr bool is_sparse = SparseStrategy<strategy_type>;

    /// `gradient.dimension` is not used: it is the model's.
    automatic(const cost::gradient_shape& gradient, Make make) : gradient_(gradient), make_(std::move(make)) {}
    automatic(const cost::exchange_choice& given, Make make) : given_(given), make_(std::move(make)) {}

    template <std::floating_point T = float, class Net>
    bound_automatic<Net, automatic, T> bind(Net& net, std::span<const layer> layers,
                                            const group_options& options = {}) const {
        return {net, *this, layers, options};
    }

    /// What `bind` does first.
    template <Transport Net>
    cost::exchange_choice choose(Net& net, std::size_t dimension, const group_options& options) const {
        if (given_) return *given_;
        cost::gradient_shape gradient = gradient_;
        gradient.dimension = dimension;
        return cost::choose(net, gradient, options.timeout);
    }
    strategy_type make(const cost::exchange_choice& choice) const { return (*make_)(choice); }

  private:
    cost::gradient_shape gradient_{};
    std::optional<cost::exchange_choice> given_;
    detail::assignable<Make> make_;
};

}}}  // namespace rill::RILL_ABI::train
