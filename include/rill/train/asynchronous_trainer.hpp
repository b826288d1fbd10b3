#pragma once

#include <rill/concept/named_span.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/detail/same_place.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/replica_plan.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/stopwatch.hpp>
#include <rill/train/trainer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How many pushes of one rank have met each fate.
struct push_counts {
    std::uint64_t counted = 0;
    std::uint64_t too_old = 0;
    std::uint64_t not_finite = 0;
    std::uint64_t run_over = 0;

    friend constexpr bool operator==(const push_counts&, const push_counts&) = default;
};

/// One rank of training without a barrier: the loop of `Replica`, with batches and records.
///
///     train::asynchronous_trainer trainer{net, model, batches, systems::rna({}, optimizer, rate)};
///     while (trainer.step())
///         if (trainer.version() >= 1000) trainer.end();
///
/// Making one is collective. A step is not: each rank steps as fast as it computes, as far as the plan's staleness lets
/// it. Each rank derives the first parameters from the key. A gradient that holds a NaN or an infinity moves nothing.
/// An exception of the replica has ended the run, on all ranks unless its kind says otherwise. One of the model, the
/// batches or the hook leaves the run as it is: the next step goes on, with the next batch.
/// Memory: parameters and gradient, besides what model, batches and replica hold.
template <Transport Net, Objective Model, BatchSource<typename Model::batch> Batches, class Plan,
          StepHook Hook = no_hook>
class asynchronous_trainer {
  public:
    using scalar = typename Model::scalar;

    asynchronous_trainer(Net& net, Model model, Batches batches, const Plan& plan, const trainer_options& options = {},
                         Hook hook = {})
        : net_(&net),
          seed_(options.group.seed),
          model_(std::move(model)),
          batches_(std::move(batches)),
          parameters_(initial(model_, options.initial)),
          gradient_(parameters_.size()),
          replica_(plan.template bind<scalar>(net, std::span<const scalar>(parameters_), options.group)),
          hook_(std::move(hook)) {}

    /// The replica itself, for what only its kind has.
    auto& replica() { return replica_; }
    Model& model() { return model_; }
    const Batches& batches() const { return batches_; }
    /// Those that the latest step computed its gradient at; once the run has ended, the final ones; after `restore`,
    /// those that were saved. A rank that only serves computes at none, and they mean nothing there.
    std::span<const scalar> parameters() const { return parameters_; }
    /// By how many rounds `parameters()` had been moved. It goes on from that of the saved run.
    std::uint64_t version() const { return version_; }
    /// How many gradients this rank has computed.
    std::uint64_t step_number() const { return step_; }
    /// What has become of this rank's gradients, as far as it is known.
    const push_counts& counts() const { return counts_; }

    /// Takes the newest parameters, computes the gradient of the next batch at them and hands it over. Then calls the
    /// hook. Once the run has ended the record is false, and `parameters()` are the final ones. On a rank that only
    /// serves, the first step is over when the run is.
    ///
    /// In the record `phases.exchange` is the time that this rank waited for newer parameters, and `invalid` names
    /// gradients of this rank that were found not to be finite since its last step. `exchange` and `phases.update` stay
    /// empty: what is sent and folded belongs to no step. `replica()` and the transport know it. What has become of the
    /// last gradients is in `counts()`, but in no record that the hook gets.
    step_record step() {
        step_record record{.step = step_};
        stopwatch clock(*net_);
        const auto held = replica_.pull(parameters_);
        record.phases.exchange = clock.lap();
        record.is_over = !held;
        if (held) {
            version_ = held->version;
            [[maybe_unused]] const auto computing = named_span(*net_, "compute");
            record.loss = model_.gradient(parameters_, batches_.next(), gradient_);
            record.phases.compute = clock.lap();
            replica_.push(gradient_, *held);
            ++step_;
        } else {
            version_ = replica_.version();
        }
        take_fates(record);
        record.elapsed = clock.total();
        if (held) hook_(std::as_const(record));
        return record;
    }

    /// The run ends on all ranks, without waiting for further gradients. Throws `contract_violation` on a rank that
    /// only serves.
    void end() { replica_.end(); }
    /// This rank computes no more gradients, but serves the others: `step` waits for the end of the run. Throws
    /// `contract_violation` on a rank that only serves.
    void retire() { replica_.retire(); }

    /// Everything that the next step depends on, on this rank: each rank writes a file of its own. Only once the run
    /// has ended; a long run is saved by ending it and going on with a new trainer.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        replica_.save(out, prefix);
        constexpr std::string_view plan = name_of_strategy<Plan>();
        if constexpr (!plan.empty()) out.add(std::string(prefix) + "plan", plan);
        out.add(std::string(prefix) + "trainer", state());
        batches_.save(out, prefix);
    }

    /// Goes on where the saved trainer had ended; it had this rank, this number of ranks, this seed and a plan of this
    /// name. Only before the first step: from then on other ranks and activities move the model. Collective: throws on
    /// all ranks where the file of any rank does not fit or their files do not belong together, `data_error` on the
    /// rank whose file it is; the trainer cannot be used then. `in`: of `checkpoint::open`, so that a rank whose file
    /// is missing takes part too.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        saved_state saved{};
        auto batches = batches_;
        replica_.restore(in, prefix, [&] {
            detail::require_same_plan(in, std::string(prefix) + "plan", name_of_strategy<Plan>());
            saved = read_state(in, std::string(prefix) + "trainer");
            batches.restore(in, prefix);
        });
        batches_ = std::move(batches);
        step_ = saved[3];
        version_ = saved[4];
        const std::string model = std::string(prefix) + "model";
        if (in.count(model) == parameters_.size()) in.read(model, parameters_);  // a server has its part only
    }

  private:
    static_assert(
        ReplicaPlan<Plan, Net, scalar>,
        "rill::train::asynchronous_trainer: the plan does not model ReplicaPlan for this scalar and transport; "
        "see rill/train/replica_plan.hpp (a strategy in lockstep, such as bsp, goes to train::trainer)");

    using bound_replica = decltype(std::declval<const Plan&>().template bind<scalar>(
        std::declval<Net&>(), std::span<const scalar>(), group_options{}));

    static aligned_vector<scalar> initial(Model& model, random_key key) {
        aligned_vector<scalar> parameters(model.dimension());
        model.initialise(parameters, key);
        return parameters;
    }

    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const {
        return {std::uint64_t(net_->rank()), std::uint64_t(net_->size()), seed_, step_, version_};
    }

    template <class Reader>
    saved_state read_state(const Reader& in, const std::string& name) const {
        saved_state saved{};
        in.read(name, saved);
        detail::require_same_place(in.path(), name, saved, state());
        return saved;
    }

    void take_fates(step_record& record) {
        while (const auto fate = replica_.fate()) switch (fate->what) {
                case push_fate::outcome::counted: ++counts_.counted; break;
                case push_fate::outcome::too_old: ++counts_.too_old; break;
                case push_fate::outcome::run_over: ++counts_.run_over; break;
                case push_fate::outcome::not_finite:
                    ++counts_.not_finite;
                    record.invalid.push_back({net_->rank(), fate->coordinate});
            }
    }

    Net* net_;
    std::uint64_t seed_;
    Model model_;
    Batches batches_;
    aligned_vector<scalar> parameters_;
    aligned_vector<scalar> gradient_;
    bound_replica replica_;
    Hook hook_;
    push_counts counts_{};
    std::uint64_t step_ = 0;
    std::uint64_t version_ = 0;
};

}}}  // namespace rill::RILL_ABI::train
