#pragma once

#include <rill/collective/barrier.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/compare_states.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/elastic_groups.hpp>
#include <rill/protocol/detail/elastic_members.hpp>
#include <rill/protocol/detail/elastic_residuals.hpp>
#include <rill/protocol/detail/elastic_states.hpp>
#include <rill/protocol/elastic_errors.hpp>
#include <rill/protocol/elastic_options.hpp>
#include <rill/protocol/on_difference.hpp>
#include <rill/protocol/residuals.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A state that the members of an elastic team hold alike: parameters, optimizer, generator.
///
/// - `pack()`: a copy of the state as bytes.
/// - `unpack(bytes)`: replaces the state by such a copy. Throws, and changes nothing, if the bytes do not fit.
/// - `changes()`: the update of the latest step, as bytes.
/// - `apply(changes)`: does this update on another rank, with the same bits.
template <class S>
concept ElasticState = requires(S& state, const S& constant, byte_view bytes) {
    { constant.pack() } -> std::convertible_to<buffer>;
    { constant.changes() } -> std::convertible_to<buffer>;
    state.unpack(bytes);
    state.apply(bytes);
};

/// Ranks that train together while some of them die, come back, leave or join. All members complete a step, or none
/// does. What is not promised: docs/elastic.md.
///
/// A view lists the members. They decide on the next view themselves (see `quorum`). The first view has all ranks that
/// the run was started with. Each of them makes an `elastic`; its constructor returns when all have. A rank that begins
/// later, or anew, makes one too. It gets the state of the members in its first `settle`, while they train on, and then
/// becomes a member.
///
/// Only one activity of a rank may use it. `net` must outlive it. In the background a member sends its state to others,
/// and nothing else: while a rank computes it answers nobody, and the others wait for it.
///
/// Cost: each step has an all-reduce of two numbers per seat beside its collectives. After a loss: two round trips and
/// a message. Each view: an all-reduce of two numbers per member, and a copy of the state, which is kept until the
/// view's first step is done.
template <Transport Net, class Shape>
class elastic {
    static_assert(ConcurrentTransport<Net> && MonitoredTransport<Net>,
                  "rill::elastic: needs a transport that tells which ranks end, and that runs activities: in_process, "
                  "simulated or tcp");

  public:
    using group_type = typename detail::elastic_groups<Net, Shape>::group_type;

    /// Errors: `timeout` if not all ranks of the first view come, `peer_failure` if all others have ended before it is
    /// there, `mismatch` if a rank has another topology or other options.
    explicit elastic(Net& net, Shape shape = {}, elastic_options options = {})
        : options_(checked(options, net.rank())),
          members_(net, options, build_of(options, shape)),
          states_(net, members_, options, build_of(options, shape)),
          residuals_(net, options),
          groups_(net, std::move(shape), options) {
        members_.meet();
    }
    elastic(const elastic&) = delete;
    elastic& operator=(const elastic&) = delete;

    /// The number of committed steps that the state of this rank has; 0 on a newcomer that has no state yet.
    std::uint64_t step() const { return members_.committed(); }
    /// The members that take the next step. On a rank that is not a member yet: the latest view that it knows.
    const rill::view& view() const { return members_.view(); }
    bool is_member() const { return members_.is_member(); }

    /// Call it before each step, with the state after `step()` steps. Returns the view of the next step. A rank that is
    /// not a member, or that lacks the latest step, gets the state of the others here; then `step()` has grown.
    ///
    /// For training with error feedback: `codecs` are those of the next attempt that keep residuals, on all ranks in
    /// the same order. They must live until then. If the others have committed a step that this rank has taken back,
    /// they are then as that step has left them. Adds the residuals of ranks that have left, where this rank is the
    /// next member after them; it waits for `patience` at most if such a rank dies meanwhile. In the next attempt the
    /// members tell each other the norms of their residuals (see `lost`).
    ///
    /// Errors: `no_quorum` if there are fewer members than `least` for longer than the timeout; `excluded`;
    /// `peer_failure` if nobody gives this rank a state that fits; `timeout` if its state or its seat takes too long;
    /// those of `take_residual`. What `pack` and `changes` throw; the next call goes on. What `apply` throws; this
    /// rank's state then lacks a step, so let the rank end.
    template <ElasticState State, detail::KeepsResidual... Codecs>
    const rill::view& settle(State& state, Codecs&... codecs) {
        const auto agree = [&] { agree_if_asked(); };
        if (!members_.has_entered()) states_.join(state, agree);
        members_.pump(deadline::immediate);
        agree();
        states_.take_up(state, agree);
        const time_point end = members_.now() + options_.timeout;
        while (static_cast<int>(view().members.size()) < options_.least) {
            if (members_.now() >= end) members_.throw_too_few();
            const bool has_heard = members_.pump(std::min(end, members_.now() + options_.repeat));
            if (has_heard && agreement().knows_newcomers()) end_view("a rank comes");
            agree();
            states_.take_up(state, agree);
        }
        settled_ = view().epoch;
        [[maybe_unused]] const auto departures = members_.departures();
        if constexpr (sizeof...(Codecs) != 0) {
            redo_if_committed(step(), codecs...);
            residuals_.take(departures, codecs...);
        }
        residuals_.use(codecs...);
        return view();
    }
    /// The residuals that the latest attempt has declared as lost, because their ranks have died since the step before,
    /// or have left without handing them over. All members declare the same, in the first step that they complete
    /// without the rank. One exception: a member that has learnt only from the agreement that a step is committed knows
    /// the norms of the step before, and declares a loss one step later.
    const std::vector<lost_residual>& lost() const { return residuals_.lost(); }

    /// Runs `body(workers)`, which calls collectives on a group of the members. In the first attempt of a view the
    /// members first compare their states (see `on_difference`).
    ///
    /// Returns true on all members if the step is committed. Returns false on all if the view has changed, or has fewer
    /// members than `least`: call `settle`, compute the gradient anew and try again. One exception: a member that lacks
    /// the result of a committed step gets false, and gets the state from the others in its next `settle`.
    ///
    /// After false, and after an error, codecs are as before the attempt; but see `settle`. Memory is too if the body
    /// has called `workers.step().keep(elements)` for it; do so for an input that is also an output. Codecs and such
    /// memory must outlive this call: make them outside the body. A collective that fails ends the attempt, even if the
    /// body catches its error.
    ///
    /// Errors: `mismatch` on all members, which names whose state differs, with `on_difference::end`; with either
    /// option if no state is that of more than half of the members; on one member alone, whose state differs again
    /// right after it has got that of the others. What `body` or its collectives throw, on all members, if no member is
    /// lost thereby. `excluded`, also before the first `settle` of a newcomer. `no_quorum`, after which the same call
    /// may succeed.
    template <class Body>
    bool attempt(Body&& body) {
        members_.require_member();
        residuals_.forget_lost();
        members_.pump(deadline::immediate);
        if (agreement().knows_newcomers()) end_view("a rank comes");
        // Not in a collective, where others may still be in the view before, and wait for this rank.
        if (agreement().has_dead_member()) end_view("a rank has ended");
        agree_if_asked();
        if (compared_ != view().epoch) wait_for_newcomers();
        const bool suffices = static_cast<int>(view().members.size()) >= options_.least;
        if (!suffices || view().epoch != settled_ || step() < agreement().base()) return false;
        attempted_ = step() + 1;
        try {
            const bool is_committed = take_step(body);
            is_committed ? groups_.step().commit() : groups_.step().abort();
            return is_committed;
        } catch (...) {
            groups_.step().abort();
            members_.tell({.happened = event::what::gives_up});
            throw;
        }
    }

    /// Lets the others go on without this rank. Returns when they have decided so. `settle` and `attempt` must not be
    /// called afterwards. Errors: `no_quorum` if so many others have ended that the rest cannot decide.
    void leave() {
        if (!is_member()) return;
        try {
            abort_group(text_of({"rank ", members_.rank(), " leaves"}));
            members_.tell({.happened = event::what::leaves});
            agree_if_asked();
        } catch (const excluded&) {  // the others have decided to go on without this rank
        }
    }
    /// Leaves, and hands the residuals to the next member, which adds them in its `settle`. Call it with the codecs of
    /// `settle`, as they are after the last attempt; if the others have committed a step that this rank has taken back,
    /// they become as that step has left them. Residuals that this rank would have taken in its next `settle` go on
    /// with its own; it waits for them as `settle` does. What the codecs keep is the other's from then on. Returns
    /// false if the residuals are lost: nobody is left to take them, or the others had already gone on without this
    /// rank. Errors: those of `leave()` and of `take_residual`; the codecs then keep their residuals.
    template <detail::KeepsResidual... Codecs>
        requires(sizeof...(Codecs) != 0)
    bool leave(Codecs&... codecs) {
        if (!is_member()) return false;
        leave();
        redo_if_committed(agreement().last().step, codecs...);
        residuals_.take(members_.departures(), codecs...);
        return residuals_.give(agreement().last(), codecs...);
    }

    /// Call it after the last step. Answers other members until all of them have called it or ended, because a member
    /// that has not committed the last step needs the answers.
    ///
    /// Waits for the timeout at most, and then for the end of an agreement that is under way.
    void finish() {
        const time_point end = members_.now() + options_.timeout;
        time_point next = members_.now();
        while (is_member() && members_.now() < end && !members_.all_others_have_finished()) {
            if (members_.now() >= next) {
                members_.tell_finished();
                next = members_.now() + options_.repeat;
            }
            members_.pump(std::min(end, next));
            try {
                // A member that is still in the last step may wait for the one that has ended.
                if (agreement().has_dead_member() && left_ != view().epoch) {
                    left_ = view().epoch;
                    abort_group("a rank has ended");
                }
                agree_if_asked();
            } catch (const error&) {  // whoever has ended has nothing left to decide
                return;
            }
        }
        // Those who have not heard of it yet must not wait for the next repetition.
        if (is_member()) members_.tell_finished();
    }

  private:
    using event = detail::agreement_event;
    /// In notices: the group has ended because its view ends, and not by a failure of a step.
    static constexpr std::uint64_t end_of_view = ~std::uint64_t{0};

    /// Throws before anything uses the transport.
    static const elastic_options& checked(const elastic_options& given, rank_t rank) {
        given.require_options(rank);
        return given;
    }
    /// What all ranks must have alike.
    static std::uint64_t build_of(const elastic_options& options, const Shape& shape) {
        return mix64(fingerprint(options), fingerprint_if_named(shape));
    }

    /// No step is committed without the contributions of all members of its view, so a step that the others have
    /// committed has what this rank has sent in its attempt.
    template <class... Codecs>
    void redo_if_committed(std::uint64_t committed, Codecs&... codecs) {
        if (attempted_ && committed >= *attempted_) (groups_.step().redo(codecs), ...);
        attempted_.reset();
    }
    /// A newcomer may be a member before the transport has told this rank of it. A collective would take it for ended.
    void wait_for_newcomers() {
        const time_point end = members_.now() + options_.patience;
        while (members_.now() < end && !members_.has_heard_of_all()) {
            members_.pump(std::min(end, members_.now() + options_.repeat));
            agree_if_asked();
        }
    }
    /// Returns whether it is committed.
    template <class Body>
    bool take_step(Body& body) {
        const std::uint64_t next = step() + 1;
        std::exception_ptr failed;
        bool is_own = false;      // this rank alone has failed
        bool is_failure = false;  // of the step, and not the end of its view
        bool is_silence = false;  // a rank has waited for one that it did not hear
        abort_notice why{.operation = end_of_view, .reason = {}};
        try {
            if (complete_step(body)) return true;
            why.reason = "elastic: states differ, and are mended";
        } catch (const error& thrown) {
            if (members_.has_aborted()) throw;
            failed = std::current_exception();
            is_failure = thrown.notice().operation != end_of_view;
            why = thrown.notice();
            is_silence = why.kind == failure::exception && why.other != no_rank;
        } catch (const std::exception& thrown) {
            failed = std::current_exception();
            why.reason = text_of({"elastic: rank ", members_.rank(), ": ", thrown.what()});
            is_own = is_failure = true;
        }
        if (is_failure) why.operation = next;
        end_view(std::move(why));
        agree_if_asked();
        if (step() >= next) return true;
        const detail::agreement_decision& last = agreement().last();
        const bool is_heard_again = is_silence && !last.is_parted;
        if (is_own || (is_failure && last.is_fruitless && !is_heard_again)) std::rethrow_exception(failed);
        return false;
    }
    /// Returns false if states are to be mended before.
    template <class Body>
    bool complete_step(Body& body) {
        group_type& all = groups_.of(view(), step());
        if (compared_ != view().epoch && !begin_alike(all)) return false;
        body(all);
        // The body may have caught what has ended it.
        if (const auto ended = groups_.aborted(view())) throw_error(*ended);
        members_.tell({.happened = event::what::prepared});
        residuals_.end_step(all, view());
        members_.tell({.happened = event::what::all_prepared});
        return true;
    }

    /// Whether all members begin the view with the same state. If not, it is to be mended, or this throws.
    bool begin_alike(group_type& all) {
        const state_comparison found = detail::gather_states(all, view(), states_.checksum(), 0);
        if (found.odd.empty()) {
            compared_ = view().epoch;
            return true;
        }
        try {  // Whoever leaves the barrier ends the view: by then all members know what they have found.
            barrier(all);
        } catch (const error&) {
            if (members_.has_aborted()) throw;
        }
        const bool is_to_end = options_.on_difference == on_difference::end || !found.has_majority();
        if (is_to_end) detail::throw_states_differ(members_.plain_view(), found, all.context());
        if (!states_.mends(found.odd)) throw_unlike(all.context());
        return false;
    }
    [[noreturn, gnu::cold]] void throw_unlike(std::uint64_t context) const {
        throw mismatch({.context = context,
                        .kind = failure::mismatch,
                        .culprit = members_.rank(),
                        .reason = text_of({"elastic: rank ", members_.rank(),
                                           " has got the state of the others, and has another one all the same: unpack "
                                           "and apply must make the same bits on all members"})});
    }

    const detail::agreement_machine& agreement() const { return members_.agreement(); }
    /// Whoever is in an attempt of this view, or begins one, leaves it.
    void abort_group(abort_notice why) { groups_.abort(view(), std::move(why)); }
    void abort_group(const std::string& why) {
        abort_group({.operation = end_of_view, .reason = text_of({"elastic: ", why})});
    }
    void end_view(abort_notice why) {
        abort_group(std::move(why));
        members_.tell({.happened = event::what::ends});
    }
    void end_view(const std::string& why) {
        abort_group(why);
        members_.tell({.happened = event::what::ends});
    }
    /// Takes part in an agreement, if one is under way, until it is over.
    void agree_if_asked() {
        members_.require_member();
        if (agreement().is_frozen()) abort_group("the view ends");
        if (agreement().is_frozen() && !agreement().missing().empty())
            members_.tell({.happened = event::what::ends});  // again
        while (agreement().is_frozen()) {
            if (!agreement().missing().empty()) members_.throw_no_quorum();
            members_.pump(agreement().wake());
            if (agreement().is_frozen() && members_.now() >= agreement().wake())
                members_.tell({.happened = event::what::tick});
            members_.require_member();
        }
    }

    elastic_options options_;
    detail::elastic_members<Net> members_;
    detail::elastic_states<Net> states_;
    detail::elastic_residuals<Net> residuals_;
    detail::elastic_groups<Net, Shape> groups_;
    std::optional<std::uint32_t> left_{};      ///< the epoch of the view whose group `finish` has ended
    std::optional<std::uint32_t> compared_{};  ///< the epoch of the view whose members hold the same state
    std::uint32_t settled_ = 0;                ///< the epoch of the view that `settle` has returned
    /// The step of the latest attempt. If this rank takes it back, others may commit it.
    std::optional<std::uint64_t> attempted_{};
};

template <class Net, class Shape>
elastic(Net&, Shape) -> elastic<Net, Shape>;
template <class Net, class Shape>
elastic(Net&, Shape, elastic_options) -> elastic<Net, Shape>;

}}  // namespace rill::RILL_ABI
