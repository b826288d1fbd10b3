#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/detail/call.hpp>
#include <rill/collective/detail/loans.hpp>
#include <rill/collective/detail/transaction.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/participation.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/protocol/detail/round_fold.hpp>
#include <rill/protocol/detail/round_links.hpp>
#include <rill/protocol/detail/round_loop.hpp>
#include <rill/protocol/detail/round_machine.hpp>
#include <rill/straggler/everyone.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/wait_all.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// The first base of `rounds`, so that its messages come before all others.
template <class Tree, class Enough, class Age, class Start, class Asked>
struct round_requirements {
    static_assert(TreeTopology<Tree>,
                  "rill::rounds: the tree does not model TreeTopology; use topology::star, topology::tree or "
                  "topology::regular_tree (see rill/concept/tree_topology.hpp)");
    static_assert(
        Completion<Enough>,
        "rill::rounds: the policy after the tree does not model Completion, which says when a gather has enough; use "
        "straggler::wait_all, fastest, tolerate or until (see rill/concept/completion.hpp)");
    static_assert(Staleness<Age>,
                  "rill::rounds: the policy after the completion does not model Staleness, which says how old a "
                  "contribution may be; "
                  "use straggler::fresh, bounded or unbounded (see rill/concept/staleness.hpp)");
    static_assert(
        Trigger<Start>,
        "rill::rounds: the policy after the staleness does not model Trigger, which says who starts a round; use "
        "straggler::solo or all_ready (see rill/concept/trigger.hpp)");
    static_assert(
        Participation<Asked>,
        "rill::rounds: the policy after the trigger does not model Participation, which says whom a round asks; "
        "use straggler::everyone or sampled (see rill/concept/participation.hpp)");
};

/// Takes the place of policies that are none, so that no more errors follow the message about them.
struct no_round_policies : round_policies<straggler::wait_all, straggler::fresh, straggler::solo> {
    template <class... Policies>
    no_round_policies(const Policies&...) {}  // NOLINT(google-explicit-constructor): made of what was passed
};

template <class Enough, class Age, class Start, class Asked>
using checked_round_policies =
    std::conditional_t<Completion<Enough> && Staleness<Age> && Trigger<Start> && Participation<Asked>,
                       round_policies<Enough, Age, Start, Asked>, no_round_policies>;
}  // namespace detail

/// Rounds in which a state goes down a tree and contributions come up, without waiting for slow ranks unless a policy
/// asks it.
///
/// All ranks run the same loop; rank 0 is the root:
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
/// `next(state)`: begins the next round at the root, and waits for the newest state elsewhere; false once the rounds
/// have ended. `reduce`: contributes, once in each round. `end()`: at the root, ends the rounds. `is_root()`;
/// `number()` of the round under way, from 1; `was_in()`: whether this rank's latest contribution is in a result,
/// known at the root once `reduce` has returned, elsewhere once `next` has. `draw_after(rounds)`: goes on with the
/// random numbers of a run that has ended after so many rounds.
///
/// *Completion* says when a rank that has children has enough of their contributions; each such rank asks it about its
/// own children. *Staleness* says whether a contribution that comes after its round has ended is dropped (`fresh`) or
/// goes into the round under way, and how far the others may run ahead. *Trigger* says when the root begins a round.
/// *Participation* says which of its children the root asks, each with the ranks below it: the others get no message of
/// the round, and wait.
///
/// - Each contribution is in one result or in none, and `was_in` says which: exactly, with `fresh`. If late ones still
///   count, a contribution that is said to be in may get into a later result. It gets into none only if it is, on its
///   way, with a rank between its own and the root that dies, fails or hears of the end of the rounds; or if an error
///   ends the rounds when a parent, also the root, has taken it as a late one, before its result. The receipt of a
///   result lists what the result holds.
/// - A rank that is late meets the newest state and goes on from there; rounds that it has missed are not made up for.
///   Its contribution to a round that has ended is recognised by the number of the round. Under `fresh` the rank learns
///   that the round is over, and answers without values.
/// - Contributions and states are handed over: a rank waits for a slower one only as far as the completion and the
///   staleness ask it to, and for room in a full mailbox (whose messages add up to more than the transport's bound). A
///   rank with children passes states on when it calls `next`, and to a child that comes late also in `reduce`. So the
///   loop must not wait for all ranks, in a barrier for instance, unless the completion is `wait_all`: one that came
///   late may be in `next` until its parent is in one of these calls again.
/// - A rank that has died or is cut off is one whose contribution does not come. A rank that waits longer than the
///   group's timeout throws `timeout`, which names where the standstill begins: the root for all ranks, another rank
///   for itself alone, because the others may go on.
/// - A rank whose `next` or `reduce` fails (a NaN, a user's fold that throws, a broken contract) ends the rounds on all
///   ranks, as their culprit. A child's contribution of wrong size or type fails where it is folded; one that comes too
///   late to count is dropped unread.
/// - Determinism: each rank with children folds its own contribution and then those of its children by rank, coordinate
///   by coordinate from the left. So the bits depend on who was in, not on who came first.
///
/// Cost of a round: N elements down and N up on each edge, and 16 bytes for each rank below the edge. A rank that has
/// children holds the state, the root a copy of it if somebody is late, and both hold contributions until they are
/// folded. Messages are handed over: each is a copy, made in memory of earlier ones (`buffer_shelf`).
///
/// Making rounds is collective over a group, whose own collectives can be called in between. It must not outlive the
/// group.
template <class Group, class Tree, class Enough = straggler::wait_all, class Age = straggler::fresh,
          class Start = straggler::solo, class Asked = straggler::everyone>
class rounds : detail::round_requirements<Tree, Enough, Age, Start, Asked>,
               public detail::round_loop<Group, Tree, detail::checked_round_policies<Enough, Age, Start, Asked>> {
    using loop = detail::round_loop<Group, Tree, detail::checked_round_policies<Enough, Age, Start, Asked>>;

  public:
    explicit rounds(Group& workers, const Tree& tree, const Enough& enough = {}, const Age& age = {},
                    const Start& start = {}, const Asked& asked = {})
        : loop(workers, tree, {enough, age, start, asked},
               {{"tree", "completion", "staleness", "trigger", "participation"}},
               {option_hash(fingerprint(tree)), option_hash(fingerprint(enough)), option_hash(fingerprint(age)),
                option_hash(fingerprint(start)), option_hash(fingerprint(asked))}) {}

    /// Contributes to the round under way; called once in each round. `input`: N elements, unchanged. `output`: at the
    /// root N elements, where the result goes; not touched elsewhere. A contribution of weight 0 counts as none.
    template <class In, class Out, class Fold = aggregate::sum, class Own = contribution>
        requires(detail::Tensors<In, Out> && !detail::MeantAsCodec<Fold>)
    round_receipt reduce(const In& input, Out&& output, const Fold& fold = {}, const Own& weighted = {}) {
        if constexpr (detail::require_contribution<Own>() && detail::require_operation<In, Out, Fold, void>()) {
            using T = tensor_element<Out>;
            const contribution own = this->checked_contribution(input, output, weighted);
            return this->guarded([&] {
                using own_view = stream_view<T, std::uint32_t>;
                const std::span<const T> mine = detail::elements_of_input(input, this->workers());
                const std::size_t dimension = this->is_root() ? detail::size_of(output) : mine.size();
                const own_view content = own.weight == 0 ? own_view({0, dimension}, sparse_view<T, std::uint32_t>{})
                                                         : own_view({0, dimension}, mine);
                return contribute(
                    content, dimension, output, fold, own, stream_codings{}, 0, [](const own_view&) {},
                    fold_into_result{});
            });
        } else {
            return {};
        }
    }

    /// Contributes through a codec that is bound to this worker. Of a codec that chooses the same entries on all ranks
    /// (`compress::random_mask`) only their values travel, and the root alone puts them in their places, with zeros
    /// between them; that needs an `OwnRoundStaleness` (`straggler::fresh`), because each round chooses other entries.
    /// `next` commits a contribution that is in a result and gives back to the codec one that is not, so that error
    /// feedback loses nothing. The codec must live that long, and serves nothing else (checked). If rounds end by an
    /// error, each contribution of which `was_in` is not true is given back, also that of a `reduce` that throws a
    /// `rill::error`. One that had been committed as a late one may be lost then; see the class.
    template <class In, class Out, class Codec, class Fold = aggregate::sum>
        requires(detail::Tensors<In, Out> && detail::MeantAsCodec<Codec>)
    round_receipt reduce(const In& input, Out&& output, Codec&& codec, const Fold& fold = {},
                         const contribution& weighted = {}) {
        if constexpr (detail::require_round_codec<In, Out, Codec, Fold, OwnRoundStaleness<Age>>()) {
            using T = tensor_element<Out>;
            const contribution own = this->checked_contribution(input, output, weighted);
            auto loan = detail::lend(&codec, "rounds: the compressor is in another operation, which has not ended");
            const auto encode = [&] {
                return encode_with(codec, detail::elements_of_input(input, this->workers()),
                                   this->workers().executor());
            };
            detail::transaction attempt(codec, encode, own.weight != 0);
            round_receipt done = this->guarded([&] {
                using Index = typename std::remove_reference_t<Codec>::index_type;
                using own_view = stream_view<T, Index>;
                codec.begin(this->drawn_number());
                const std::size_t dimension = codec.coded_dimension();
                const own_view given =
                    own.weight == 0 ? own_view({0, dimension}, sparse_view<T, Index>{}) : attempt.give();
                const auto heard = [&](const own_view& received) { attempt.take_received(received); };
                const auto contribute_to = [&](const auto& take) {
                    return contribute(given, dimension, output, fold, own, codec.codings(), fingerprint_of(codec),
                                      heard, take);
                };
                if constexpr (std::remove_reference_t<Codec>::is_coordinatewise)
                    return contribute_to(fold_into_result{});
                else
                    return contribute_to([&](std::span<T> result, const auto& fold_into) {
                        auto& folded = this->workers().template workspace<aligned_vector<T>>();
                        folded.resize(dimension);
                        fold_into(span_of(folded));
                        codec.decode(std::span<const T>(folded), result);
                    });
            });
            this->hold(codec, std::move(loan));
            attempt.release();
            return done;
        } else {
            return {};
        }
    }

  private:
    /// The fold is the result.
    struct fold_into_result {
        template <class T, class FoldInto>
        void operator()(std::span<T> result, const FoldInto& fold_into) const {
            fold_into(result);
        }
    };

    /// `alike`: the hash of what all ranks have alike in the codec. `heard(view)` is called if the coding of
    /// contributions is lossy, with the contribution as its receivers decode it. `take(result, fold_into)` makes the
    /// root's result of the fold, which `fold_into` writes to a span of `dimension` elements.
    template <class T, class Index, class Out, class Fold, class Heard, class Take>
    round_receipt contribute(const stream_view<T, Index>& view, std::size_t dimension, Out& output, const Fold& fold,
                             const contribution& own, const stream_codings& codings, std::uint64_t alike,
                             const Heard& heard, const Take& take) {
        auto& operands = this->workers().template workspace<detail::round_operands<T, Index>>();
        operands.clear();
        wire::header head = this->template frame_header_of<T>(detail::round_kind::contribute, dimension);
        head.call = this->options_of_frame(fingerprint(fold), mix64(codings.fingerprint(), sizeof(Index), alike));
        const auto arrivals = this->links().gather();
        if (this->links().is_over()) return this->template contribute_nothing<T, Index>(head);
        operands.add_own(head, view, codings.contribution, this->own_key(), own, this->workers().rank(),
                         this->workers().executor());
        if (own.weight != 0 && !codings.contribution.is_lossless()) heard(operands.views().front());
        for (const auto& each : arrivals) operands.contributors.error_bound += this->add_child(operands, each, head);
        const auto late = this->links().latecomers();
        operands.contributors.late.insert(operands.contributors.late.end(), late.begin(), late.end());
        if (this->is_root()) {
            const std::span<T> result = detail::elements_of_output(output, this->workers());
            take(result, [&](std::span<T> folded) {
                operands.fold(folded, fold, this->workers().executor());
                if constexpr (!Fold::finish_is_trivial)
                    if (!operands.contributors.in.empty()) fold.finish(folded, operands.contributors.weight());
            });
            detail::deliver(std::span<const T>(result), output);
        } else {
            this->links().hand_up(operands.message(head, fold, codings, this->workers().executor()));
        }
        return this->describe(std::move(operands.contributors));
    }
};

}}  // namespace rill::RILL_ABI
