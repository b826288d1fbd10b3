#pragma once

#include <rill/collective/barrier.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/collective/step_group.hpp>
#include <rill/collective/step_scope.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/detail/state_exchange.hpp>
#include <rill/protocol/elastic_errors.hpp>
#include <rill/protocol/elastic_options.hpp>
#include <rill/session/session.hpp>
#include <rill/topology/along.hpp>
#include <rill/transport/subgroup.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A state that the members of an elastic team hold alike: parameters, optimizer, generator. `pack()` is a copy of it
/// as bytes; `unpack(bytes)` replaces it by such a copy, or throws and changes nothing if the bytes do not fit;
/// `changes()` is what led to it from the state before the latest step; `apply(changes)` does that on another rank,
/// with the same bits.
template <class S>
concept ElasticState = requires(S& state, const S& constant, byte_view bytes) {
    { constant.pack() } -> std::convertible_to<buffer>;
    { constant.changes() } -> std::convertible_to<buffer>;
    state.unpack(bytes);
    state.apply(bytes);
};

/// Ranks that train together while some of them die, come back, come and go. All members complete a step, or none does.
///
/// The members are a view, whose next one they decide on themselves (see `quorum`). The first view is all ranks that
/// the run was started with; they make this object, whose constructor returns when all have. A rank that begins later,
/// or anew, makes it too; it gets the state of the others in its first `settle`, while these train on, and is taken in
/// when it has it.
///
/// One activity of a rank uses it. Nothing happens in the background but that members give their state to others: a
/// rank that computes answers nobody, and is waited for. `net` must outlive it. What is not promised: docs/elastic.md.
///
/// Cost of a step: that of its collectives, and a barrier. After a loss: two round trips and a message.
template <Transport Net, class Shape>
class elastic {
    static_assert(ConcurrentTransport<Net> && MonitoredTransport<Net>,
                  "rill: an elastic team needs a transport that tells which ranks end, and that runs activities: "
                  "in_process, simulated or tcp");

  public:
    using group_type = step_group<subgroup<Net>, typename topology::with_collectives<Shape>::type>;

    /// Errors: `timeout` if not all ranks of the first view come, `peer_failure` if one ends before that, `mismatch` if
    /// one has another topology or other options.
    explicit elastic(Net& net, Shape shape = {}, elastic_options options = {})
        : net_(&net),
          shape_(std::move(shape)),
          options_(checked(options, net.rank())),
          session_(net, "elastic", options.timeout, session_kind::open),
          exchange_(net, {.build = build(), .catch_up_bytes = options.catch_up_bytes}) {
        for (rank_t rank = 0; rank < net.size(); ++rank)
            if (rank != net.rank()) others_.push_back(rank);
        finished_.resize(static_cast<std::size_t>(net.size()));
        net.monitor(messages());
        probes_ = session_.waits();
        find_view();
    }
    elastic(const elastic&) = delete;
    elastic& operator=(const elastic&) = delete;

    /// How many steps the state of this rank has: those that have been committed, or 0 on a rank that has not got the
    /// state of the others yet.
    std::uint64_t step() const { return machine_ ? machine_->committed() : 0; }
    /// Who takes the next step. On a rank that is not a member yet, as far as it knows.
    const rill::view& view() const { return machine_ ? machine_->view() : known_.next; }
    bool is_member() const { return machine_ && !machine_->is_excluded(); }

    /// Call it before each step, with the state after `step()` steps. Takes up the view of this step. A rank that is
    /// not a member, or that lacks the latest step, gets the state of the others here; then `step()` has grown.
    ///
    /// Errors: `no_quorum` if there are fewer members than `least` for longer than the timeout; `excluded`;
    /// `peer_failure` if nobody gives this rank a state.
    template <ElasticState State>
    const rill::view& settle(State& state) {
        if (!machine_) join(state);
        pump(deadline::immediate);
        agree_if_asked();
        while (machine_->committed() < machine_->base()) catch_up(state);
        give(state);
        const time_point end = now() + options_.timeout;
        while (static_cast<int>(view().members.size()) < options_.least) {
            if (now() >= end) throw_too_few();
            if (pump(std::min(end, now() + options_.repeat)) && machine_->knows_newcomers()) end_view("a rank comes");
            agree_if_asked();
        }
        while (machine_->committed() < machine_->base()) catch_up(state);
        settled_ = view().epoch;
        return view();
    }

    /// Runs `body(workers)`, which makes collectives on the group of the view. Returns whether the step is committed,
    /// on all members alike; inputs and codecs are then as the calls left them. If the view has changed, returns false:
    /// codecs are as before, and the caller calls `settle` and computes anew. So is what
    /// `workers.step().keep(elements)` was called for, such as an input that is also an output; it must live as long as
    /// this call. On a member that lacks the result of a step that the others have committed, it returns false too; the
    /// next `settle` brings it.
    ///
    /// Codecs, and what is kept, must outlive this call: make them outside the body. A collective that has failed ends
    /// the step, even if the body catches its error.
    ///
    /// Errors: what `body` or its collectives throw, if no member is lost thereby: on all members, and the step is not
    /// committed. `excluded`; `no_quorum`, after which the same call may succeed. After an error codecs, and what
    /// is kept, are as before.
    template <class Body>
    bool attempt(Body&& body) {
        require_member();
        pump(deadline::immediate);
        if (machine_->knows_newcomers()) end_view("a rank comes");
        // Not in a collective, where others may still be in the view before, and wait for this rank.
        if (machine_->has_dead_member()) end_view("a rank has ended");
        agree_if_asked();
        if (view().epoch != settled_ || machine_->committed() < machine_->base()) return false;
        try {
            const bool is_committed = take_step(body);
            is_committed ? scope_.commit() : scope_.abort();
            return is_committed;
        } catch (...) {
            scope_.abort();
            tell({.happened = event::what::gives_up});
            throw;
        }
    }

    /// The others go on without this rank, which must not call `settle` or `attempt` again. Returns when they have
    /// decided so.
    void leave() {
        if (!is_member()) return;
        try {
            abort_group(text_of({"rank ", net_->rank(), " leaves"}));
            tell({.happened = event::what::leaves});
            agree_if_asked();
        } catch (const excluded&) {  // that was the aim
        }
    }

    /// Call it after the last step. Answers other members until all have called it or ended: one that has not committed
    /// the last step may need this rank.
    ///
    /// Waits for the timeout at most, and then for the end of an agreement that is under way.
    void finish() {
        const time_point end = now() + options_.timeout;
        time_point next = now();
        while (is_member() && now() < end && !all_have_finished()) {
            if (now() >= next) {
                for (const rank_t rank : view().members)
                    if (rank != net_->rank()) post(rank, {.kind = detail::agreement_message::what::finished});
                next = now() + options_.repeat;
            }
            pump(std::min(end, next));
            try {
                // A member that is still in the last step may wait for the one that has ended.
                if (machine_->has_dead_member() && left_ != view().epoch) {
                    left_ = view().epoch;
                    abort_group("a rank has ended");
                }
                agree_if_asked();
            } catch (const error&) {  // whoever has ended has nothing left to decide
                return;
            }
        }
        // Those who have not heard of it yet must not wait for the next repetition.
        for (const rank_t rank : view().members)
            if (rank != net_->rank() && is_member()) post(rank, {.kind = detail::agreement_message::what::finished});
    }

  private:
    using event = detail::agreement_event;
    using message_is = detail::agreement_message::what;
    /// In notices: the group has ended because its view ends, and not by a failure of a step.
    static constexpr std::uint64_t end_of_view = ~std::uint64_t{0};
    /// What is made for a view.
    struct crew {
        subgroup<Net> net;
        std::optional<group_type> workers{};
        /// Has the context of `workers`, where a rank ends the view before it has made them.
        std::optional<session<subgroup<Net>>> unmade{};

        crew(Net& parent, const rill::view& of) : net(parent, of, "elastic") {}
    };

    time_point now() const { return std::as_const(*net_).now(); }
    channel messages() const { return session_.on(0); }
    std::uint64_t life_of(rank_t rank) const { return std::as_const(*net_).incarnation(rank); }
    detail::agreement_limits limits() const {
        return {.repeat = options_.repeat, .patience = options_.patience, .longest = options_.timeout};
    }
    static bool lists(const rill::view& in, rank_t rank, std::uint64_t life) {
        const auto found = std::lower_bound(in.members.begin(), in.members.end(), rank);
        return found != in.members.end() && *found == rank &&
               in.incarnations[static_cast<std::size_t>(found - in.members.begin())] == life;
    }

    /// Throws before anything uses the transport.
    static const elastic_options& checked(const elastic_options& given, rank_t rank) {
        given.require_options(rank);
        return given;
    }
    /// What all ranks must have alike.
    std::uint64_t build() const { return mix64(fingerprint(options_), fingerprint_if_named(shape_)); }

    // --- a step

    /// Returns whether it is committed.
    template <class Body>
    bool take_step(Body& body) {
        const std::uint64_t next = machine_->committed() + 1;
        std::exception_ptr failed;
        std::string own;  // why this rank alone has failed
        bool is_failure = true;
        try {
            group_type& all = workers();
            body(all);
            // The body may have caught what has ended it.
            if (const auto ended = crew_of_view().net.aborted(all.context())) throw_error(*ended);
            tell({.happened = event::what::prepared});
            barrier(all);
            tell({.happened = event::what::all_prepared});
            return true;
        } catch (const error& thrown) {
            if (net_->aborted(every_context)) throw;
            failed = std::current_exception();
            is_failure = thrown.notice().operation != end_of_view;
        } catch (const std::exception& thrown) {
            failed = std::current_exception();
            own = text_of({"rank ", net_->rank(), ": ", thrown.what()});
        }
        end_view(own.empty() ? "a step has failed" : own, next);
        agree_if_asked();
        if (machine_->committed() >= next) return true;
        if (!own.empty() || (is_failure && machine_->last().is_fruitless)) std::rethrow_exception(failed);
        return false;
    }

    // --- messages

    void post(rank_t to, detail::agreement_message message) {
        net_->post(to, messages(),
                   detail::to_message(detail::agreement_frame{life_of(net_->rank()), std::move(message)}));
    }
    void tell(const event& what) {
        const auto actions = machine_->on(what, now());
        for (const detail::agreement_action& each : actions) {
            using ask = detail::agreement_action::ask;
            if (each.what == ask::send) post(each.peer, each.message);
            if (each.what == ask::probe) net_->inquire(each.peer, probes_, 1, deadline::immediate);
            if (each.what == ask::fence) net_->fence(each.peer, each.incarnation);
        }
    }

    /// Takes one message, and then all that are there. Returns whether there was one.
    bool pump(deadline until) {
        bool any = false;
        while (auto got =
                   net_->receive(std::span<const rank_t>(others_), messages(), any ? deadline::immediate : until)) {
            any = true;
            take(*got);
        }
        return any;
    }
    template <class Message>
    void take(const Message& got) {
        const rank_t from = got.source();
        if (got.pieces().size_bytes() == peer_event_bytes) {
            const peer_event changed = read_peer_event(got);
            if (!machine_) return changed_before(from, changed);
            return tell({.happened = event::what::changed,
                         .peer = from,
                         .change = changed.kind,
                         .incarnation = changed.incarnation});
        }
        room_.clear();
        for (const byte_view piece : got.pieces()) room_.append(piece.begin(), piece.end());
        try {
            const auto frame = detail::read_agreement_frame(room_, net_->size());
            machine_ ? take(from, frame) : take_before(from, frame);
        } catch (const protocol_error&) {  // whoever has sent it waits in vain
        }
    }
    void take(rank_t from, const detail::agreement_frame& frame) {
        const detail::agreement_message& m = frame.message;
        const bool is_for_all =
            m.kind == message_is::decide || m.kind == message_is::join || m.kind == message_is::hello;
        const bool is_listed = lists(machine_->view(), from, frame.life);
        if (m.kind == message_is::finished) finished_[static_cast<std::size_t>(from)] = is_listed;
        if (is_for_all || is_listed || m.epoch < machine_->view().epoch)
            tell({.happened = event::what::arrived, .peer = from, .message = &m});
    }

    // --- the first view

    void find_view() {
        const time_point end = now() + options_.timeout;
        told_.resize(static_cast<std::size_t>(net_->size()));
        told_[static_cast<std::size_t>(net_->rank())] = life_of(net_->rank());
        for (rank_t rank = 0; rank < net_->size(); ++rank)
            if (life_of(rank) != 0) known_.next.members.push_back(rank);
        present_ = known_.next.members;
        std::erase(present_, net_->rank());
        while (!machine_ && !is_newcomer_) {
            if (now() >= end) throw_alone();
            introduce_again(message_is::hello);
            pump(std::min(end, introduces_at_));
            if (machine_ || is_newcomer_) return;
            const auto has_told = [&](rank_t rank) { return told_[static_cast<std::size_t>(rank)] != 0; };
            if (!std::all_of(known_.next.members.begin(), known_.next.members.end(), has_told)) continue;
            for (const rank_t rank : known_.next.members)
                known_.next.incarnations.push_back(told_[static_cast<std::size_t>(rank)]);
            // Others may have missed what this rank has said before they began.
            introduce(message_is::hello);
            take_part();
        }
    }
    /// Tells the members that this rank knows that it is there, or that it has the state.
    void introduce(message_is kind) {
        detail::agreement_message made;
        made.kind = kind;
        made.build = build();
        for (const rank_t rank : known_.next.members) {
            if (rank == net_->rank()) continue;
            made.joins = {{net_->rank(), life_of(net_->rank())}, {rank, life_of(rank)}};
            post(rank, made);
        }
    }
    /// Once in `repeat`: messages that come must not bring forth messages.
    void introduce_again(message_is kind) {
        if (now() < introduces_at_) return;
        introduces_at_ = now() + options_.repeat;
        introduce(kind);
    }
    void take_before(rank_t from, const detail::agreement_frame& frame) {
        const detail::agreement_message& m = frame.message;
        if (m.kind == message_is::hello) {
            const bool is_for_this_life = m.joins.size() == 2 && m.joins[1].incarnation == life_of(net_->rank());
            if (!is_for_this_life) return;
            if (m.build != build() && !is_newcomer_) throw_mismatch(from);
            std::uint64_t& told = told_[static_cast<std::size_t>(from)];
            if (told != 0 && told != frame.life && !is_newcomer_)
                throw_ended(text_of({"rank ", from, " has begun anew before the first view was there"}));
            told = frame.life;
        }
        if (m.kind != message_is::decide) return;
        if (is_newcomer_ && m.value.next.epoch < known_.next.epoch) return;
        known_ = m.value;
        is_newcomer_ = true;
        if (lists(known_.next, net_->rank(), life_of(net_->rank()))) take_part();
    }
    /// From now on this rank is a member of the view that it knows.
    void take_part() {
        machine_.emplace(known_, net_->rank(), options_.quorum, limits());
        for (const auto& [rank, life] : ended_before_)
            tell({.happened = event::what::changed, .peer = rank, .change = peer_change::ended, .incarnation = life});
        ended_before_.clear();
    }
    void changed_before(rank_t from, const peer_event& changed) {
        std::erase(present_, from);
        if (changed.kind == peer_change::ended) ended_before_.emplace_back(from, changed.incarnation);
        if (changed.kind != peer_change::ended) return present_.push_back(from);
        if (present_.empty()) throw_ended("all others have ended");
    }

    // --- newcomers

    template <class State>
    void join(State& state) {
        std::vector<rank_t> providers = known_.next.members;
        std::erase(providers, net_->rank());
        // The nearest first: by rank, the next one.
        std::rotate(providers.begin(), std::upper_bound(providers.begin(), providers.end(), net_->rank()),
                    providers.end());
        exchange_.begin_fetch(known_.next.epoch, providers, std::nullopt);
        const time_point end = now() + options_.timeout;
        introduces_at_ = {};  // what it says now is new
        while (!machine_) {
            if (now() >= end) throw_alone();
            if (exchange_.fetch(state, now() + options_.repeat)) {
                introduce_again(message_is::join);
                pump(std::min(end, introduces_at_));
            } else {
                pump(deadline::immediate);
            }
        }
        fetch_base(state);
    }
    /// The state of a step that others have committed without this rank.
    template <class State>
    void catch_up(State& state) {
        std::vector<rank_t> providers = view().members;
        std::erase(providers, net_->rank());
        exchange_.begin_fetch(view().epoch, providers, machine_->committed());
        fetch_base(state);
    }
    template <class State>
    void fetch_base(State& state) {
        const time_point end = now() + options_.timeout;
        while (!exchange_.fetch_step(state, machine_->base(), std::min(end, now() + options_.repeat))) {
            if (now() >= end) throw_alone();
            pump(deadline::immediate);
            agree_if_asked();
        }
        tell({.happened = event::what::caught_up, .step = std::max(*exchange_.have(), machine_->base())});
        given_ = machine_->committed();
        exchange_.serve(view(), given_);
        serves_ = view().epoch;
    }
    /// To those who ask for this rank's state.
    template <class State>
    void give(const State& state) {
        const std::uint64_t at = machine_->committed();
        if (!serves_ || *serves_ != view().epoch) {
            exchange_.serve(view(), at);
            if (!serves_) given_ = at;
            serves_ = view().epoch;
        }
        if (given_ < at) exchange_.committed(at, state.changes());
        given_ = at;
        if (exchange_.wants_snapshot(at)) exchange_.take_snapshot(at, state.pack());
    }

    // --- views

    crew& crew_of_view() {
        if (crews_.empty() || crews_.back()->net.epoch() != view().epoch) {
            // Others may still be in the attempt before.
            if (crews_.size() > 1) crews_.erase(crews_.begin());
            crews_.push_back(std::make_unique<crew>(*net_, view()));
        }
        return *crews_.back();
    }
    group_options of_group() const { return {.timeout = options_.timeout, .seed = options_.seed, .monitors = true}; }
    /// Made anew for each view, collectively.
    group_type& workers() {
        crew& own = crew_of_view();
        if (!own.workers) own.workers.emplace(scope_, own.net, shape_, of_group());
        own.workers->resume_at(machine_->committed() << 20U);
        return *own.workers;
    }
    /// Whoever is in an attempt of this view, or begins one, leaves it.
    void abort_group(const std::string& why, std::uint64_t operation = end_of_view) {
        crew& own = crew_of_view();
        if (!own.workers && !own.unmade) own.unmade.emplace(own.net, of_group().name, options_.timeout);
        const std::uint64_t context = own.workers ? own.workers->context() : own.unmade->context();
        own.net.abort({.context = context,
                       .operation = operation,
                       .culprit = own.net.rank(),
                       .reason = text_of({"elastic: ", why})});
    }
    void end_view(const std::string& why, std::uint64_t operation = end_of_view) {
        abort_group(why, operation);
        tell({.happened = event::what::ends});
    }

    /// Takes part in an agreement, if one is under way, until it is over.
    void agree_if_asked() {
        require_member();
        if (machine_->is_frozen()) abort_group("the view ends");
        if (machine_->is_frozen() && !machine_->missing().empty()) tell({.happened = event::what::ends});  // again
        while (machine_->is_frozen()) {
            if (!machine_->missing().empty()) throw_no_quorum();
            pump(machine_->wake());
            if (machine_->is_frozen() && now() >= machine_->wake()) tell({.happened = event::what::tick});
            require_member();
        }
    }
    void require_member() const {
        if (!machine_ || machine_->is_excluded()) throw_excluded();
    }
    bool all_have_finished() const {
        return std::all_of(view().members.begin(), view().members.end(), [&](rank_t rank) {
            return rank == net_->rank() || finished_[static_cast<std::size_t>(rank)] || machine_->has_lost(rank);
        });
    }

    // --- errors

    abort_notice notice(rank_t culprit, std::string reason) const {
        return {.context = session_.context(),
                .operation = step(),
                .kind = failure::timeout,
                .culprit = culprit,
                .reason = std::move(reason)};
    }
    /// Incarnations are for machines.
    std::string text_of_view() const { return rill::view{.epoch = view().epoch, .members = view().members}.text(); }
    static std::string text_of_ranks(const std::vector<rank_t>& ranks) {
        std::string text = ranks.size() == 1 ? "rank " : "ranks ";
        for (std::size_t i = 0; i < ranks.size(); ++i) text += text_of({i == 0 ? "" : ", ", ranks[i]});
        return text;
    }
    [[noreturn, gnu::cold]] void throw_excluded() const {
        if (!machine_)
            throw excluded(notice(net_->rank(), text_of({"elastic: rank ", net_->rank(),
                                                         " is no member yet: settle takes it in, before an attempt"})));
        throw excluded(notice(
            net_->rank(), text_of({"elastic: the others go on without rank ", net_->rank(), ", in ", text_of_view()})));
    }
    [[noreturn, gnu::cold]] void throw_no_quorum() const {
        const auto& missing = machine_->missing();
        throw no_quorum(notice(missing.front(),
                               text_of({"elastic: rank ", net_->rank(), " finds no quorum of ", text_of_view(), ": ",
                                        text_of_ranks(missing), missing.size() == 1 ? " is" : " are", " missing"})));
    }
    [[noreturn, gnu::cold]] void throw_too_few() const {
        throw no_quorum(notice(no_rank, text_of({"elastic: ", text_of_view(), " has ", view().members.size(),
                                                 " members, and at least ", options_.least, " are wanted"})));
    }
    [[noreturn, gnu::cold]] void throw_alone() const {
        std::vector<rank_t> missing;
        for (const rank_t rank : known_.next.members)
            if (told_[static_cast<std::size_t>(rank)] == 0) missing.push_back(rank);
        throw timeout(notice(missing.empty() ? no_rank : missing.front(),
                             missing.empty() ? text_of({"elastic: rank ", net_->rank(), " is not taken in within ",
                                                        options_.timeout.seconds(), " s"})
                                             : text_of({"elastic: ", text_of_ranks(missing), " of the first view ",
                                                        missing.size() == 1 ? "has" : "have", " not come within ",
                                                        options_.timeout.seconds(), " s"})));
    }
    [[noreturn, gnu::cold]] void throw_mismatch(rank_t odd) const {
        abort_notice told = notice(
            odd, text_of({"elastic: rank ", odd, " has another topology or other options than rank ", net_->rank()}));
        told.kind = failure::mismatch;
        throw mismatch(told);
    }
    [[noreturn, gnu::cold]] void throw_ended(const std::string& why) const {
        abort_notice told = notice(no_rank, text_of({"elastic: rank ", net_->rank(), " finds no view: ", why}));
        told.kind = failure::exception;
        throw peer_failure(told);
    }

    Net* net_;
    Shape shape_;
    elastic_options options_;
    session<Net> session_;
    detail::state_exchange<Net> exchange_;
    std::uint64_t probes_ = 0;  ///< a context in which nobody announces anything
    std::vector<rank_t> others_{};
    std::vector<rank_t> present_{};  ///< the others that have not ended, until this rank is a member
    std::vector<std::pair<rank_t, std::uint64_t>> ended_before_{};  ///< with the life that has ended, until then
    std::vector<std::uint64_t> told_{};  ///< the lives of those who have said that they are there
    std::vector<bool> finished_{};
    detail::agreement_decision known_{};  ///< the view that this rank knows, until it is a member
    bool is_newcomer_ = false;
    time_point introduces_at_{};
    std::optional<detail::agreement_machine> machine_{};
    step_scope scope_{};
    std::vector<std::unique_ptr<crew>> crews_{};
    std::optional<std::uint32_t> serves_{};  ///< the epoch of the view that others are served in
    std::optional<std::uint32_t> left_{};    ///< the epoch of the view whose group `finish` has ended
    std::uint32_t settled_ = 0;              ///< the epoch of the view that `settle` has returned
    std::uint64_t given_ = 0;                ///< the step of the latest state that others can get
    buffer room_{};
};

template <class Net, class Shape>
elastic(Net&, Shape) -> elastic<Net, Shape>;
template <class Net, class Shape>
elastic(Net&, Shape, elastic_options) -> elastic<Net, Shape>;

}}  // namespace rill::RILL_ABI
