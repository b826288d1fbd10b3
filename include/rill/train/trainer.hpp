#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/detail/same_place.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/sparse_objective.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/strategy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Options of a trainer. They must be the same on all ranks.
struct trainer_options {
    random_key initial{};   ///< the key from which the first parameters are drawn
    group_options group{};  ///< timeout of each exchange, seed of the codecs' random numbers
};

/// One rank of data-parallel training, with its replica of the model. Making one is collective, and so is each step.
///
/// Each rank derives the first parameters from the key. With a strategy whose `replicas_equal` they stay the same bits
/// on all ranks at all times, and a step in which any rank's gradient holds a NaN or an infinity moves none. With other
/// strategies such a gradient is left out of the step. If the strategy has `require_same_start`, as those in lockstep
/// have, making the trainer throws `mismatch` on all ranks where one starts with other parameters. Finite gradients can
/// still make parameters infinite, where their sum or the product with the rate is too large: only gradients and rates
/// are looked at, no parameters. A strategy with error feedback codes that product: one that is too large ends the
/// exchange with `invalid_value` instead.
///
/// After an error of the exchange the strategy's sessions have ended: restore a checkpoint into a new trainer. Do so
/// too after an exception of the model or the batches, on all ranks: let it leave the rank's body. A rank that catches
/// it and calls `step` again makes the same step with its next batch if nothing of it was sent (`overlapped_bsp` sends
/// buckets meanwhile, and has then ended), and the others have waited for it. What `mix_beside` has mixed meanwhile
/// counts: the step that is made again does not mix.
///
/// A strategy that is sparse takes the gradient of a `SparseObjective` as a stream. Memory: parameters and gradient,
/// besides what model, batches and strategy hold. A step that is not skipped allocates nothing once the first ones are
/// done, except with a strategy whose root begins the steps (`partial_bsp`, `coded_bsp`), which keeps lists of who has
/// contributed.
template <Transport Net, Trainable Model, BatchSource<typename Model::batch> Batches, class Plan,
          StepHook Hook = no_hook>
class trainer {
  public:
    using scalar = typename Model::scalar;

    trainer(Net& net, Model model, Batches batches, const Plan& strategy, const trainer_options& options = {},
            Hook hook = {})
        : net_(&net),
          seed_(options.group.seed),
          model_(std::move(model)),
          batches_(std::move(batches)),
          strategy_(strategy.template bind<scalar>(net, model_.layers(), options.group)),
          parameters_(model_.dimension()),
          gradient_(model_.dimension()),
          hook_(std::move(hook)) {
        model_.initialise(parameters_, options.initial);
        if constexpr (requires { strategy_.require_same_start(std::as_bytes(std::span(parameters_))); })
            strategy_.require_same_start(std::as_bytes(std::span(parameters_)));
    }

    auto& strategy() { return strategy_; }
    Model& model() { return model_; }
    const Batches& batches() const { return batches_; }
    std::span<const scalar> parameters() const { return parameters_; }
    /// The number of the next step. Skipped steps count.
    std::uint64_t step_number() const { return step_; }

    /// Computes the gradient of the next batch, exchanges it with those of the other ranks and moves the parameters.
    /// Once the run has ended it does nothing, and the record is false. Then calls the hook; an exception of the hook
    /// propagates, and the next call goes on with the next step.
    step_record step() {
        const auto compute = [this](auto&&... ready) {
            [[maybe_unused]] const auto computing = named_span(*net_, "compute");
            return model_.gradient(parameters_, batches_.next(), gradient_, ready...);
        };
        step_record record =
            strategy_.step(std::span(parameters_), gradient_of<Plan, scalar>(gradient_), step_, compute);
        if (record.is_over) {
            step_ = std::max(step_, record.step);  // it may have missed the last steps
            return record;
        }
        step_ = record.step + 1;
        hook_(std::as_const(record));
        return record;
    }

    /// Ends the run after the last step: `while (trainer.step()) if (is_good(trainer)) trainer.end();`. All ranks call
    /// it after the same step; where a root begins the steps, as in `partial_bsp`, its call counts.
    void end() { strategy_.end(); }

    /// Everything that the next step depends on, on this rank: each rank writes a file of its own.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        constexpr std::string_view strategy = name_of_strategy<Plan>();
        if constexpr (!strategy.empty()) out.add(std::string(prefix) + "strategy", strategy);
        out.add(std::string(prefix) + "trainer", state());
        out.add(std::string(prefix) + "parameters", parameters_);
        batches_.save(out, prefix);
        strategy_.state().save(out, prefix);
    }

    /// Continues bit for bit where the saved trainer stood; it had this rank, this number of ranks, this seed and a
    /// strategy of this name. A file that names no strategy, as one of a strategy without a name, is read.
    /// Collective, before the first step or between the same two steps of all ranks: throws `data_error` on all ranks,
    /// and changes nothing, where the file of any rank does not fit, or their files hold different steps, or other
    /// numbers of operations, or, where the strategy keeps replicas equal, other parameters. Where a rank's own file is
    /// refused, the error of each other rank tells the reason too. `in`: of `checkpoint::open`, so that a rank whose
    /// file is missing takes part too. A run that has ended goes on; where a root begins the steps, only a new trainer
    /// can.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        saved_state saved{};
        auto parameters = parameters_;
        auto batches = batches_;
        auto state = strategy_.state();
        std::exception_ptr refused;
        try {
            detail::require_same_plan(in, std::string(prefix) + "strategy", name_of_strategy<Plan>());
            saved = read_state(in, std::string(prefix) + "trainer");
            in.read(std::string(prefix) + "parameters", parameters);
            batches.restore(in, prefix);
            state.restore(in, prefix);
        } catch (const std::exception&) {
            refused = std::current_exception();  // thrown after the other ranks have been told
        }
        const std::uint64_t sum =
            mix64(saved[4], Plan::replicas_equal ? checksum(std::as_bytes(std::span(parameters))) : 0);
        detail::require_common_files({in.path(), net_->rank(), net_->size(), refused, saved[3], sum}, "step",
                                     [&](std::span<std::int64_t> table) { strategy_.add_up(table); });
        strategy_.resume_at(saved[4]);
        parameters_.swap(parameters);
        batches_ = std::move(batches);
        strategy_.state() = std::move(state);
        step_ = saved[3];
    }

  private:
    static_assert(Strategy<Plan, Net, scalar>,
                  "rill::train::trainer: the strategy does not model Strategy for this scalar and transport; see "
                  "rill/train/strategy.hpp");
    static_assert(
        !Plan::is_layered || LayeredObjective<Model>,
        "rill::train::trainer: the strategy exchanges gradients layer by layer and the objective does not say "
        "when they are ready; give it gradient(parameters, batch, output, ready) or use train::bsp");

    static_assert(SparseStrategy<Plan> ? SparseObjective<Model> : Objective<Model>,
                  "rill::train::trainer: the strategy and the objective do not take the gradient in one form; give the "
                  "objective gradient(parameters, batch, stream) for sparse_bsp, and gradient(parameters, batch, span) "
                  "for the others");

    using bound_strategy = decltype(std::declval<const Plan&>().template bind<scalar>(
        std::declval<Net&>(), std::span<const layer>(), group_options{}));

    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const {
        return {static_cast<std::uint64_t>(net_->rank()), static_cast<std::uint64_t>(net_->size()), seed_, step_,
                strategy_.position()};
    }

    template <class Reader>
    saved_state read_state(const Reader& in, const std::string& name) const {
        saved_state saved{};
        in.read(name, saved);
        detail::require_same_place(in.path(), name, saved, state());
        return saved;
    }

    Net* net_;
    std::uint64_t seed_;
    Model model_;
    Batches batches_;
    bound_strategy strategy_;
    aligned_vector<scalar> parameters_;
    std::conditional_t<SparseStrategy<Plan>, stream<scalar>, aligned_vector<scalar>> gradient_;
    Hook hook_;
    std::uint64_t step_ = 0;
};

}}}  // namespace rill::RILL_ABI::train
