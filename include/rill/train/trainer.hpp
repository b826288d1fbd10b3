#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/strategy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// What a trainer starts from, and how its ranks meet; the same on all of them.
struct trainer_options {
    random_key initial{};   ///< of the first parameters, the same on all ranks
    group_options group{};  ///< timeout of each exchange, seed of what the codecs draw
};

/// One rank of data-parallel training, with its replica of the model. Making one is collective, and so is each step.
///
/// The parameters are bit for bit the same on all ranks at all times: each rank derives the first ones from the key,
/// and every step moves all of them alike. A step in which any rank's gradient holds a NaN or an infinity moves none:
/// that rank contributes with weight 0, by which all ranks see it at no cost; only then do they tell each other where.
/// After an exception of a step the group has ended: restore a checkpoint into a new trainer.
/// Memory: parameters and gradient, besides what model, batches and strategy hold. A step that is not skipped allocates
/// nothing once the first ones are done.
template <Transport Net, Objective Model, BatchSource<typename Model::batch> Batches, class Plan>
class trainer {
  public:
    using scalar = typename Model::scalar;
    using group_type = group<Net, decltype(Plan::topology)>;

    trainer(Net& net, Model model, Batches batches, const Plan& strategy, const trainer_options& options = {})
        : workers_(net, strategy.topology, options.group),
          model_(std::move(model)),
          batches_(std::move(batches)),
          strategy_(bind(strategy, model_)),
          parameters_(model_.dimension()),
          gradient_(model_.dimension()) {
        model_.initialise(parameters_, options.initial);
        if constexpr (is_layered) agree(workers_, {{"division into buckets"}}, {option_hash(strategy_.fingerprint())});
    }

    group_type& workers() { return workers_; }
    Model& model() { return model_; }
    const Batches& batches() const { return batches_; }
    std::span<const scalar> parameters() const { return parameters_; }
    /// Of the next step: how many there were, skipped ones included.
    std::uint64_t step_number() const { return step_; }

    /// The gradient of the next batch, exchanged with those of all ranks, and the step that follows from them.
    step_record step() {
        step_record record{.step = step_};
        const std::optional<std::size_t> bad = exchange(record);
        if (record.exchange.contributors < workers_.size()) explain_skip(bad, record);
        ++step_;
        return record;
    }

    /// Everything that the next step depends on, on this rank: each rank writes a file of its own.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "trainer", state());
        out.add(std::string(prefix) + "parameters", parameters_);
        batches_.save(out, prefix);
        strategy_.save(out, prefix);
    }

    /// Continues bit for bit where the saved trainer stood; it had this rank, this number of ranks and this seed.
    /// Collective: throws `data_error` on all ranks, and changes nothing, where the file of any rank does not fit, or
    /// their files hold different steps or parameters. What a rank's own file is refused for, that rank alone throws.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        saved_state saved{};
        auto parameters = parameters_;
        auto batches = batches_;
        auto strategy = strategy_;
        std::exception_ptr refused;
        try {
            saved = read_state(in, std::string(prefix) + "trainer");
            in.read(std::string(prefix) + "parameters", parameters);
            batches.restore(in, prefix);
            strategy.restore(in, prefix);
        } catch (const std::exception&) {
            refused = std::current_exception();  // the other ranks wait to hear of it
        }
        require_agreement(in.path(), refused, saved[3], parameters);
        parameters_.swap(parameters);
        batches_ = std::move(batches);
        strategy_ = std::move(strategy);
        step_ = saved[3];
        workers_.resume_at(saved[4]);
    }

  private:
    static constexpr bool is_layered = LayeredStrategy<Plan, scalar>;
    static_assert(
        !is_layered || LayeredObjective<Model>,
        "rill::train::trainer: the strategy exchanges gradients layer by layer and the objective does not say "
        "when they are ready; give it gradient(parameters, batch, output, ready) or use train::bsp");

    static auto bind(const Plan& strategy, const Model& model) {
        if constexpr (is_layered)
            return strategy.template bind<scalar>(model.layers());
        else
            return strategy.template bind<scalar>(model.dimension());
    }
    using bound_strategy = decltype(bind(std::declval<const Plan&>(), std::declval<const Model&>()));
    static_assert(is_layered ? BoundLayeredStrategy<bound_strategy, group_type, scalar>
                             : Strategy<Plan, scalar> && BoundStrategy<bound_strategy, group_type, scalar>,
                  "rill::train::trainer: the strategy does not model Strategy for this scalar and transport; see "
                  "rill/train/strategy.hpp");

    /// Computes, exchanges and moves; returns the first coordinate of this rank's gradient that is not finite.
    std::optional<std::size_t> exchange(step_record& record) {
        if constexpr (is_layered) {
            auto layers = strategy_.begin(workers_, std::span(gradient_));
            record.loss = compute([&](std::size_t layer) { layers.ready(layer); });
            record.exchange = layers.finish(std::span(parameters_), step_);
            return layers.invalid();
        } else {
            record.loss = compute();
            const auto bad = kernel::find_non_finite(std::span<const scalar>(gradient_));
            record.exchange = strategy_.step(workers_, std::span(parameters_), std::span(gradient_), step_,
                                             contribution{.weight = bad ? 0.0 : 1.0});
            return bad;
        }
    }

    /// The loss of the next batch, and its gradient.
    template <class... Ready>
    double compute(Ready&&... ready) {
        [[maybe_unused]] const auto computing = named_span(workers_.net(), "compute");
        return model_.gradient(parameters_, batches_.next(), gradient_, ready...);
    }

    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const {
        return {static_cast<std::uint64_t>(workers_.rank()), static_cast<std::uint64_t>(workers_.size()),
                workers_.options().seed, step_, workers_.operation_number()};
    }

    template <class Reader>
    saved_state read_state(const Reader& in, const std::string& name) const {
        saved_state saved{};
        in.read(name, saved);
        const saved_state own = state();
        constexpr const char* what[] = {"rank", "number of ranks", "seed of the group"};
        for (std::size_t i = 0; i < 3; ++i)
            if (saved[i] != own[i])
                throw data_error(in.path(), "section \"" + name + "\", " + what[i], std::to_string(own[i]),
                                 std::to_string(saved[i]));
        return saved;
    }

    /// Tells all ranks what this one has read, and throws on all of them unless all can go on from there.
    void require_agreement(const std::string& path, const std::exception_ptr& refused, std::uint64_t step,
                           std::span<const scalar> parameters) {
        const auto size = static_cast<std::size_t>(workers_.size()), rank = static_cast<std::size_t>(workers_.rank());
        std::vector<std::int64_t> told(3 * size);
        const std::span refusals = std::span(told).first(size), steps = std::span(told).subspan(size, size),
                        sums = std::span(told).last(size);
        refusals[rank] = refused != nullptr ? 1 : 0;
        steps[rank] = static_cast<std::int64_t>(step);
        sums[rank] = static_cast<std::int64_t>(detail::checksum(std::as_bytes(parameters)));
        all_reduce(workers_, told, told);
        if (refused != nullptr) std::rethrow_exception(refused);
        const auto beside = [](std::size_t other) { return "compared with the file of rank " + std::to_string(other); };
        for (std::size_t other = 0; other < size; ++other)
            if (refusals[other] != 0)
                throw data_error(path, beside(other), "one that fits its trainer", "another: see that rank's error");
        for (std::size_t other = 1; other < size; ++other) {
            if (steps[other] != steps[0])
                throw data_error(path, beside(other), "step " + std::to_string(steps[0]) + " as on rank 0",
                                 std::to_string(steps[other]));
            if (sums[other] != sums[0])
                throw data_error(path, beside(other), "the parameters that rank 0 has, the same on all ranks",
                                 "others");
        }
    }

    /// Every rank learns whose gradients cannot be used: coordinate + 1 at the place of each such rank.
    void explain_skip(std::optional<std::size_t> bad, step_record& record) {
        std::vector<std::int64_t> places(static_cast<std::size_t>(workers_.size()));
        if (bad) places[static_cast<std::size_t>(workers_.rank())] = static_cast<std::int64_t>(*bad) + 1;
        record.exchange.wire += all_reduce(workers_, places, places).wire;
        for (std::size_t rank = 0; rank < places.size(); ++rank)
            if (places[rank] != 0)
                record.invalid.push_back({static_cast<rank_t>(rank), static_cast<std::size_t>(places[rank] - 1)});
    }

    group_type workers_;
    Model model_;
    Batches batches_;
    bound_strategy strategy_;
    aligned_vector<scalar> parameters_;
    aligned_vector<scalar> gradient_;
    std::uint64_t step_ = 0;
};

}}}  // namespace rill::RILL_ABI::train
