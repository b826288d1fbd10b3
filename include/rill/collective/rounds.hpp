#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/agree.hpp>
#include <rill/collective/detail/round_fold.hpp>
#include <rill/collective/detail/round_links.hpp>
#include <rill/collective/front.hpp>
#include <rill/concept/aggregation_tree.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/wait_all.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace rill::inline RILL_ABI {

/// Rounds of a state that goes down a tree and contributions that come up, in which nobody need wait for the slow ones.
///
/// The same loop on all ranks; rank 0 is the root:
///
///     rill::rounds steps{workers, rill::topology::star{}, rill::straggler::tolerate{2}};
///     while (steps.next(model)) {
///         const auto own = gradient_of(model);
///         const rill::round_receipt r = steps.reduce(own, update, rill::aggregate::mean{});
///         if (!steps.is_root()) continue;
///         move(model, update);
///         if (is_good(model)) steps.end();
///     }
///
/// *Completion* says when a rank that has children has enough of their contributions: each asks it of its own.
/// *Staleness* says whether what comes after its round has ended is dropped (`fresh`) or goes into the round under way,
/// and how far the others may run ahead. *Trigger* says when the root begins a round.
///
/// - A rank that is late meets the newest state and goes on from there: rounds that it has missed are not made up for.
///   What it sent to one that has ended is known as such, by its round.
/// - Contributions and states are handed over: no rank waits for a slower one but for what the completion and the
///   staleness ask of it. A rank with children passes states on when it calls `next`.
/// - A rank that has died or is cut off is one whose contribution does not come. Who waits longer than the group's
///   timeout throws `timeout`, which names where the standstill begins: the root for all ranks, another for itself
///   alone, because the others may go on.
/// - A rank whose own call fails (a NaN, a user's fold that throws) ends the rounds on all ranks, as their culprit.
/// - Bits: per coordinate the left fold of the contributions by rank, each level of the tree for itself, own first; so
///   they depend on who was in, not on who came first.
///
/// Cost of a round: N elements down and N up on each edge, and 16 bytes for each rank below it; each rank that has
/// children holds a copy of the state, and contributions until it folds them. Handed over messages are allocated.
///
/// Making one is collective, over a group whose own collectives can be called in between; it must not outlive that.
template <class Group, AggregationTree Tree, Completion Enough = straggler::wait_all, Staleness Age = straggler::fresh,
          Trigger Start = straggler::solo>
class rounds {
    using transport = typename Group::transport_type;
    using policies = detail::round_policies<Enough, Age, Start>;

  public:
    explicit rounds(Group& workers, const Tree& tree, const Enough& enough = {}, const Age& age = {},
                    const Start& start = {})
        : group_(&agreed(workers, tree, enough, age, start)),
          links_(workers.net(), tree, policies{enough, age, start}, random_key{workers.options().seed},
                 workers.options().timeout),
          unwinding_(std::uncaught_exceptions()) {}
    rounds(const rounds&) = delete;
    rounds& operator=(const rounds&) = delete;
    /// At the root it ends the rounds, waiting for nobody; where an exception passes, for all ranks as a failure.
    ~rounds() {
        if (!is_root() || links_.has_ended()) return;
        try {
            if (std::uncaught_exceptions() > unwinding_)
                abort("an exception has passed through its rounds");
            else
                links_.end();
        } catch (...) {  // they have ended by a failure
        }
    }

    bool is_root() const { return links_.is_root(); }
    /// Of the round under way; from 1. Those that this rank has missed are counted.
    std::uint64_t number() const { return links_.round(); }
    /// Whether this rank's latest contribution is in a result, or bound to get into one. Known once `next` has
    /// returned; at the root always.
    bool was_in() const { return links_.was_in(); }

    /// The next round: at the root it begins, with `state` for all; elsewhere `state` becomes that of the newest. False
    /// when rounds have ended; `state` is unchanged then. Settles the codec of the latest `reduce`.
    template <class State>
    bool next(State&& state) {
        if constexpr (detail::require_output<State>()) {
            using T = tensor_element<State>;
            if (links_.has_ended()) {
                settle();
                return false;
            }
            return guarded([&] {
                auto& stage = detail::stage_of<T>(*group_);
                const bool goes_on = is_root() ? begin<T>(detail::elements_of_input(state, stage))
                                               : take<T>(detail::elements_of_output(state, stage));
                if (!is_root() && goes_on)
                    detail::deliver(std::span<const T>(detail::elements_of_output(state, stage)), state);
                settle();
                return goes_on;
            });
        }
        return false;
    }

    /// No more rounds: `next` returns false on all ranks, on late ones once they call it. At the root; waits for
    /// nobody.
    void end() {
        RILL_EXPECTS(is_root(), "rounds: only the root ends them");
        if (!links_.has_ended()) guarded([&] { links_.end(); });
    }

    /// Contributes to the round under way; called once in each. `input`: N elements, unchanged. `output`: N elements at
    /// the root, where the result goes; not touched elsewhere. A contribution of weight 0 is no contribution.
    template <class In, class Out, class Fold = aggregate::sum>
        requires(detail::Tensors<In, Out> && !detail::CompressorFor<Fold, Out>)
    round_receipt reduce(const In& input, Out&& output, const Fold& fold = {}, const contribution& own = {}) {
        if constexpr (detail::require_operation<In, Out, Fold, void>()) {
            using T = tensor_element<Out>;
            check(input, output, own);
            return guarded([&] {
                const std::span<const T> mine = detail::elements_of_input(input, detail::stage_of<T>(*group_));
                const stream_view<T, std::uint32_t> view({0, mine.size()}, mine);
                return contribute(view, mine.size(), output, fold, own, stream_codings{});
            });
        } else {
            return {};
        }
    }

    /// The same through a codec that is bound to this worker. `next` commits what is in a result and gives back what is
    /// not, so that error feedback loses nothing; the codec must live that long.
    template <class In, class Out, class Codec, class Fold = aggregate::sum>
        requires(detail::Tensors<In, Out> && detail::CompressorFor<Codec, Out>)
    round_receipt reduce(const In& input, Out&& output, Codec& codec, const Fold& fold = {},
                         const contribution& own = {}) {
        static_assert(Codec::is_coordinatewise,
                      "rill::rounds: the compressor makes its output from the fold of all ranks on all of them "
                      "(random_mask, PowerSGD); use top_k, bucket_top_k, threshold or keep_all");
        if constexpr (detail::require_operation<In, Out, Fold, void>()) {
            using T = tensor_element<Out>;
            check(input, output, own);
            return guarded([&] {
                unsettled_ = {&codec, [](void* of, bool is_in) {
                                  is_in ? static_cast<Codec*>(of)->commit() : static_cast<Codec*>(of)->rollback();
                              }};
                codec.begin(number());
                using Index = typename Codec::index_type;
                const std::size_t dimension = codec.coded_dimension();
                const auto view =
                    own.weight == 0 ? stream_view<T, Index>({0, dimension}, sparse_view<T, Index>{})
                                    : encode_with(codec, detail::elements_of_input(input, detail::stage_of<T>(*group_)),
                                                  group_->executor());
                return contribute(view, dimension, output, fold, own, codec.codings());
            });
        } else {
            return {};
        }
    }

  private:
    static Group& agreed(Group& workers, const Tree& tree, const Enough& enough, const Age& age, const Start& start) {
        agree(workers, mix64(fingerprint(tree), fingerprint(enough), fingerprint(age), fingerprint(start)));
        return workers;
    }

    template <class T>
    wire::header head_of(operation kind, std::size_t dimension) const {
        return {.kind = kind,
                .element = element_type_of<T>,
                .epoch = static_cast<std::uint32_t>(number()),
                .context = links_.context(),
                .dimension = dimension};
    }

    template <class T>
    bool begin(std::span<const T> values) {
        wire::header head = head_of<T>(operation::next_round, values.size());
        head.index_bytes = 4;
        head.codes.indices = index_coding::dense;
        head.range = {0, values.size()};
        head.count = values.size();
        links_.begin(head, std::as_bytes(values));
        return true;
    }

    template <class T>
    bool take(std::span<T> state) {
        const auto newest = links_.take_newest();
        if (!newest) return false;
        const frame values = frame_reader(newest->pieces()).template next<T, std::uint32_t>();
        if (values.head.count != state.size())
            links_.fail(failure::mismatch, group_->rank(),
                        "rank " + std::to_string(group_->rank()) + " takes a state of " + std::to_string(state.size()) +
                            " elements where the root gives " + std::to_string(values.head.count));
        frame_scratch<T, std::uint32_t> unused;
        copy_dense(content_of(values, unused), state, T{}, group_->executor());
        return true;
    }

    template <class In, class Out>
    void check([[maybe_unused]] const In& input, [[maybe_unused]] const Out& output, const contribution& own) const {
        detail::require_weight(own);
        RILL_EXPECTS(number() != 0 && !links_.has_ended(), "rounds: reduce belongs to a round that next has begun");
        RILL_EXPECTS(!is_root() || detail::size_of(output) == detail::size_of(input) || own.weight == 0,
                     "rounds: at the root input and output must be of one size");
    }

    template <class T, class Index, class Out, class Fold>
    round_receipt contribute(const stream_view<T, Index>& view, std::size_t dimension, Out& output, const Fold& fold,
                             const contribution& own, const stream_codings& codings) {
        auto& operands = group_->template workspace<detail::round_operands<T, Index>>();
        operands.clear();
        wire::header head = head_of<T>(operation::contribute, dimension);
        head.call = static_cast<std::uint32_t>(mix64(fingerprint(fold), codings.fingerprint(), sizeof(Index)));
        operands.add_own(head, view, codings.contribution, own_key(), own, group_->rank(), group_->executor());
        for (const auto& each : links_.gather()) add_child(operands, each, head);
        const auto late = links_.latecomers();
        operands.roll.late.insert(operands.roll.late.end(), late.begin(), late.end());
        if (is_root()) {
            auto& stage = detail::stage_of<T>(*group_);
            const std::span<T> result = detail::elements_of_output(output, stage);
            const auto& folded = operands.fold(dimension, fold, codings.when, group_->executor());
            copy_dense(folded.view(), result, fold.template identity<T>(), group_->executor());
            if constexpr (!Fold::finish_is_trivial)
                if (!operands.roll.in.empty()) fold.finish(result, operands.roll.weight());
            detail::deliver(std::span<const T>(result), output);
        } else {
            links_.hand_up(operands.message(head, dimension, fold, codings, group_->executor()));
        }
        links_.forget_arrivals();
        return describe(std::move(operands.roll));
    }

    template <class Operands, class Arrival>
    void add_child(Operands& operands, const Arrival& from, const wire::header& own) {
        const std::string rank = "rank " + std::to_string(from.rank);
        try {
            const wire::header head = frame_reader(from.message.pieces()).peek();
            if (head.call != own.call || head.element != own.element || head.dimension != own.dimension)
                links_.fail(failure::mismatch, from.rank,
                            rank + " contributes " + std::to_string(head.dimension) + " elements of " +
                                name(head.element) + ", rank " + std::to_string(group_->rank()) + " " +
                                std::to_string(own.dimension) + " of " + name(own.element) +
                                (head.dimension == own.dimension && head.element == own.element
                                     ? ", with another fold, compressor or coding"
                                     : ""));
            operands.add(from.message.pieces(), static_cast<std::size_t>(own.dimension), from.age, group_->size(),
                         group_->executor());
        } catch (const protocol_error& e) {
            if (e.culprit() != no_rank) throw;
            links_.fail(failure::protocol, from.rank,
                        rank + " sent bytes that are no valid frame: " + e.notice().reason);
        }
    }

    round_receipt describe(detail::round_roll&& roll) const {
        round_receipt result;
        result.operation_number = number();
        result.contributors = static_cast<int>(roll.in.size());
        result.weight = roll.weight();
        result.age = roll.age();
        result.rounds = 1;
        result.wire = links_.counted();
        result.elapsed = std::as_const(group_->net()).now() - links_.began();
        result.in = std::move(roll.in);
        result.late = std::move(roll.late);
        result.missing = links_.missing();
        result.error_bound = roll.error_bound;
        return result;
    }

    random_key own_key() const {
        return random_key{group_->options().seed}.derive(fingerprint("rounds"), number(), group_->rank());
    }

    /// The codec of the latest contribution learns what became of that.
    void settle() {
        if (unsettled_.codec != nullptr) unsettled_.settle(std::exchange(unsettled_.codec, nullptr), was_in());
    }

    /// Runs `body`. If this rank fails in it, all ranks learn that.
    template <class Body>
    auto guarded(Body&& body) {
        if (left_) throw_error(*left_);
        if (const auto notice = group_->net().aborted(links_.context())) throw_error(*notice);
        try {
            return body();
        } catch (const error& e) {
            const abort_notice& notice = e.notice();
            if (notice.context != links_.context() && notice.context != every_context)
                abort(notice.reason, notice.kind);
            if (!group_->net().aborted(links_.context())) left_ = notice;
            throw;
        } catch (const std::exception& e) {
            abort(e.what());
            throw;
        } catch (...) {
            abort("an exception of unknown type");
            throw;
        }
    }

    /// Tells all ranks; returns when it is this rank's own exception that counts.
    void abort(const std::string& why, failure kind = failure::exception) {
        const rank_t rank = group_->rank();
        const abort_notice notice{
            .context = links_.context(),
            .operation = number(),
            .kind = kind,
            .culprit = rank,
            .reason = "round " + std::to_string(number()) + ": rank " + std::to_string(rank) + ": " + why};
        const abort_notice first = group_->net().abort(notice);
        if (first != notice || kind != failure::exception) throw_error(first);
    }

    struct unsettled_codec {
        void* codec = nullptr;
        void (*settle)(void*, bool) = nullptr;
    };

    Group* group_;
    detail::round_links<transport, Tree, policies> links_;
    int unwinding_;
    unsettled_codec unsettled_{};
    std::optional<abort_notice> left_{};  // this rank has left alone, for that reason
};

}  // namespace rill::inline RILL_ABI
