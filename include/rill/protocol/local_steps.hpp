#pragma once

#include <rill/concept/replica.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/fifo.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/detail/policy_state.hpp>
#include <rill/protocol/detail/require_replica.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// How many steps a rank makes by itself before it pushes their sum.
struct local_step_options {
    std::uint32_t every = 32;

    friend bool operator==(const local_step_options&, const local_step_options&) = default;
};

/// A replica on which each rank makes `every` steps by itself, at a model of its own. Then it pushes to `replica` the
/// model from before these steps less that after them, which for a replica that descends is a gradient.
///
///     const train::descent outer{train::sgd{}, train::constant_rate{1}, false};  // averages models
///     rill::partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, outer, model};
///     rill::local_steps replica{rounds, {.every = 32}, inner, model};
///
/// Over rounds that wait for all ranks this is local SGD, with an outer Nesterov step DiLoCo; over `majority` or
/// `two_choices` their asynchronous kin. Models `Replica`; `pull` and `push` reach `replica` once in `every` steps.
///
/// - *Move*: an `Update`, to which each gradient is a fold of weight 1, in the order of this rank's steps. Its state
///   lasts over the pushes.
/// - A push of n steps has weight 1 and is the sum of n steps. Under `train::descent`, which multiplies the mean by the
///   weight of all, that moves the model as n steps of weight 1 each would.
/// - A gradient with a NaN is refused, and makes no step. The others share the fate of the push that they are in;
///   rounds and ages count pushes.
/// - `retire` and `end` push first what steps there are.
///
/// One activity calls its members; `replica` must outlive it. Memory: three times the model, and the inner update's
/// state. Source: Stich 2019 (local SGD); Douillard et al. 2023 (DiLoCo).
template <class R, class Move>
class local_steps {
  public:
    using element_type = typename R::element_type;

    /// `first`: the replica's first model. Throws `contract_violation` if `every` is 0. Not collective.
    template <class Model>
    local_steps(R& replica, const local_step_options& options, const Move& move, const Model& first)
        : replica_(&replica),
          every_(options.every),
          move_(move.template bind<element_type>(detail::size_of(first))),
          base_(detail::size_of(first)),
          own_(base_.size()),
          step_(base_.size()) {
        RILL_EXPECTS(every_ > 0, "local_steps: every is at least 1");
        detail::read_tensor(first, std::span<element_type>(base_));  // a replica that only serves writes none
    }
    local_steps(const local_steps&) = delete;
    local_steps& operator=(const local_steps&) = delete;

    /// Writes the model after this rank's own steps; after a push, the newest one of the replica.
    template <class Model>
    std::optional<held_version> pull(Model&& model) {
        static_assert(detail::require_replica_tensor<Model, element_type>());
        RILL_EXPECTS(detail::size_of(model) == own_.size(), "local_steps: the model has another size");
        if (steps_ == 0 || is_leaving_) {
            held_ = replica_->pull(base_);
            own_ = base_;
        }
        detail::write_tensor(std::span<const element_type>(own_), model);
        return held_;
    }

    /// Makes a step along a gradient that was computed at the model that `pull` has given last. If the update throws,
    /// the push has not been made and has no fate, and this rank's own model is unspecified.
    template <class Gradient>
    void push(const Gradient& gradient, const held_version& held) {
        static_assert(detail::require_replica_tensor<Gradient, element_type>());
        RILL_EXPECTS(held_ && held == *held_, "local_steps: this version is not the one that was pulled last");
        RILL_EXPECTS(detail::size_of(gradient) == own_.size(), "local_steps: the gradient has another size");
        RILL_EXPECTS(!is_leaving_, "local_steps: a rank pushes nothing after retire or end");
        detail::read_tensor(gradient, std::span<element_type>(step_));
        const std::uint64_t number = pushes_;
        if (const auto bad = kernel::find_non_finite(std::span<const element_type>(step_))) {
            refused_.push_back(
                {.push = number, .what = push_fate::outcome::not_finite, .weight = 0, .coordinate = *bad});
            ++pushes_;
            return;
        }
        move_.apply(std::span<element_type>(own_), std::span<const element_type>(step_), 1.0, moves_);
        under_way_.push_back({.push = number, .group = groups_});
        ++pushes_;
        ++moves_;
        if (++steps_ == every_) hand_over();
    }

    /// What has become of a push that has not been told yet; empty if there is none.
    std::optional<push_fate> fate() {
        if (!refused_.empty()) {
            const push_fate told = refused_.front();
            refused_.pop_front();
            return told;
        }
        for (;;) {
            if (!of_group_) of_group_ = replica_->fate();
            if (!of_group_) return std::nullopt;
            const auto next = std::find_if(under_way_.begin(), under_way_.end(),
                                           [&](const step& each) { return each.group == of_group_->push; });
            if (next == under_way_.end()) {
                of_group_.reset();
                continue;
            }
            push_fate told = *of_group_;
            told.push = next->push;
            under_way_.erase(next);
            return told;
        }
    }

    void retire() {
        leave();
        replica_->retire();
    }
    void end() {
        leave();
        replica_->end();
    }

    /// The replica itself, for what only its kind has.
    R& replica() { return *replica_; }
    /// The version of the replica's model once the run has ended.
    std::uint64_t version() const { return replica_->version(); }

    /// Once the run has ended: the replica's state and that of the inner update.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        replica_->save(out, prefix);
        out.add(std::string(prefix) + "local", std::array{moves_});
        detail::save_part(out, std::string(prefix) + "local.", move_);
    }
    /// Before the first `pull`, as the replica's.
    template <class Reader, class Also = void (*)()>
    void restore(
        const Reader& in, std::string_view prefix, Also&& also = [] {}) {
        auto move = move_;
        std::array<std::uint64_t, 1> moves{};
        replica_->restore(in, prefix, [&] {
            also();
            in.read(std::string(prefix) + "local", moves);
            detail::restore_part(in, std::string(prefix) + "local.", move);
        });
        move_ = std::move(move);
        moves_ = moves[0];
    }

  private:
    struct step {
        std::uint64_t push;
        std::uint64_t group;  ///< the number of the replica's push
    };

    void leave() {
        if (is_leaving_) return;
        if (steps_ > 0) hand_over();
        is_leaving_ = true;
    }

    void hand_over() {
        for (std::size_t i = 0; i < own_.size(); ++i) step_[i] = base_[i] - own_[i];
        replica_->push(step_, *held_);
        base_ = own_;  // if more steps follow before the next pull, they are pushed by themselves
        ++groups_;
        steps_ = 0;
    }

    R* replica_;
    std::uint32_t every_;
    detail::bound_to<Move, element_type> move_;
    aligned_vector<element_type> base_{};  ///< the replica's model
    aligned_vector<element_type> own_{};   ///< and after this rank's steps
    aligned_vector<element_type> step_{};
    std::optional<held_version> held_{};
    std::uint32_t steps_ = 0;   ///< since the last push
    std::uint64_t moves_ = 0;   ///< of the inner update
    std::uint64_t pushes_ = 0;  ///< gradients
    std::uint64_t groups_ = 0;  ///< pushes to the replica
    detail::fifo<step> under_way_{};
    detail::fifo<push_fate> refused_{};
    std::optional<push_fate> of_group_{};
    bool is_leaving_ = false;
};

// Arguments that it does not take.
template <class T>
class local_steps<detail::wrong_arguments, T> {
    static_assert(
        !std::same_as<T, T>,
        "rill::local_steps: takes a replica, how many steps as in {.every = 32}, an update and the first model");

  public:
    template <class... Any>
    explicit local_steps(Any&&...) {}
};

template <class R, class Move, class Model>
local_steps(R&, local_step_options, Move, const Model&) -> local_steps<R, Move>;
template <class R, class... Policies>
    requires(sizeof...(Policies) != 3)
local_steps(R&, const Policies&...) -> local_steps<detail::wrong_arguments, float>;
template <class R, class Options, class Move, class Model>
    requires(!std::convertible_to<Options, local_step_options>)
local_steps(R&, Options, Move, const Model&) -> local_steps<detail::wrong_arguments, float>;

}}  // namespace rill::RILL_ABI
