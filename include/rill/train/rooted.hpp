#pragma once

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/stopwatch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The group of a strategy whose root gathers along a tree.
template <class Net, class Tree>
using group_on = decltype(group{std::declval<Net&>(), std::declval<Tree>(), group_options{}});

/// What bound strategies have in common whose root alone moves the parameters, in rounds: the group, the rounds and the
/// root's optimizer. `Steps`: `rill::rounds` or `rill::coded_reduce`.
///
/// In each step a rank gets the newest parameters, computes its gradient there and contributes it. A rank that is late
/// misses steps. The optimizer's state counts at the root.
template <class Net, class Tree, class Steps, class Bound>
class rooted {
  public:
    using group_type = group_on<Net, Tree>;

    /// `make(workers)` makes the rounds.
    template <class Make>
    rooted(Net& net, const Tree& tree, const group_options& options, Make&& make, Bound optimizer)
        : workers_(net, tree, options), steps_(make(workers_)), optimizer_(std::move(optimizer)) {}

    group_type& workers() { return workers_; }
    bool is_root() const { return steps_.is_root(); }
    /// What the last step's round did: who was in, who was late.
    const round_receipt& latest() const { return latest_; }

    /// Ends the run on all ranks; on others than the root it does nothing.
    void end() {
        if (!is_root()) return;
        steps_.end();
        has_begun_ = false;
    }
    Bound& state() { return optimizer_; }
    const Bound& state() const { return optimizer_; }
    /// The number of the next step.
    std::uint64_t position() const { return first_ + steps_.number(); }
    /// Collective, between two steps: the root's next round is step `position`. A step that an exception of the model
    /// has left is made again first.
    void resume_at(std::uint64_t position) {
        RILL_EXPECTS(!has_begun_, "train: go back between two steps; the one that an exception has left comes first");
        std::int64_t rounds = is_root() ? static_cast<std::int64_t>(steps_.number()) : 0;
        add_up({&rounds, 1});
        first_ = position - static_cast<std::uint64_t>(rounds);
        steps_.draw_after(first_);
    }
    void add_up(std::span<std::int64_t> table) { all_reduce(workers_, table, table); }

  protected:
    /// A round in which this rank computes if it `contributes`; then `reduce(bad)` hands in the gradient, of which
    /// `bad` is the first coordinate that is not finite, and `move(record, rate)` follows at the root if any came.
    template <RateSchedule Rate, class T, class Compute, class Reduce, class Move>
    step_record step_with(const Rate& schedule, std::span<T> parameters, std::span<T> gradient, bool contributes,
                          Compute&& compute, Reduce&& reduce, Move&& move) {
        stopwatch clock(workers_.net());
        step_record record{.is_over = !has_begun_ && !steps_.next(parameters)};
        if (record.is_over) {
            record.step = position();
            return record;
        }
        has_begun_ = true;
        record.step = position() - 1;
        const double rate = rate_at<T>(schedule, record.step);
        const duration waited = clock.lap();
        std::optional<std::size_t> bad;
        if (contributes) {
            record.loss = compute();
            bad = kernel::find_non_finite(std::span<const T>(gradient));
            if (bad) record.invalid.push_back({workers_.rank(), *bad});
        }
        record.phases.compute = clock.lap();
        has_begun_ = false;
        latest_ = reduce(bad.has_value());
        record.exchange = static_cast<const receipt&>(latest_);
        record.phases.exchange = waited + clock.lap();
        if (is_root() && latest_.contributors > 0) {
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            move(record, rate);
        }
        record.phases.update = clock.lap();
        record.elapsed = clock.total();
        return record;
    }

    Steps& steps() { return steps_; }

  private:
    group_type workers_;
    Steps steps_;
    Bound optimizer_;
    round_receipt latest_;
    std::uint64_t first_ = 0;  ///< the step that the first round was, or would have been, modulo 2^64
    bool has_begun_ = false;   ///< the round under way, which an exception of `compute` has left without a gradient
};

}}}  // namespace rill::RILL_ABI::train
