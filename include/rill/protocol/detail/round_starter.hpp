#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/start_machine.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The session in which the ranks of a partial collective start its rounds: a `start_machine` on a transport.
template <ConcurrentTransport Net, Trigger Start>
class round_starter {
  public:
    /// `name`: of the protocol, for the session and for messages. `outer`: the context of the group that the protocol
    /// was made of; `inner`: of the one that its collectives run in.
    round_starter(Net& net, const char* name, const Start& trigger, random_key key, duration timeout,
                  std::uint64_t outer, std::uint64_t inner)
        : name_(name),
          outer_(outer),
          inner_(inner),
          session_(net, name, timeout),
          machine_(trigger, session_.size(), session_.rank(), key, timeout) {
        if constexpr (MonitoredTransport<Net>) net.monitor(session_.on(0));
        net.announce(session_.context(), {.number = 0, .kind = operation::handshake});
    }

    /// Returns when a round has started. `partakers`: the ranks that may contribute, ascending; `operations`: how many
    /// the inner group has run.
    void await(std::uint64_t round, std::span<const rank_t> partakers, const own_readiness& own,
               std::uint64_t operations) {
        operations_before_ = operations;
        round_.store(round, std::memory_order_relaxed);
        const time_point now = std::as_const(session_.net()).now();
        run_machine(session_, session_.on(0), machine_, machine_.begin(round, partakers, own, now), *this);
        session_.net().announce(session_.context(), {.number = round + 1, .kind = operation::all_reduce});
    }

    /// The rank that has started the latest round.
    rank_t coordinator() const { return machine_.coordinator(); }

    /// Tells the activity of this rank that waits in `await`: a push or an urge, with its number, by a message made in
    /// `room`.
    void notify(message_kind kind, std::uint64_t number, buffer room = kept_room(0)) {
        detail::notify(session_, kind, number, std::move(room));
    }

    /// Runs the body of the protocol. Its failure ends the run on all ranks.
    template <class Body>
    void guarded(Body&& body) {
        session_.guarded(*this, [&] {
            try {
                body();
            } catch (const error& thrown) {
                abort_notice notice = own(thrown.notice());
                if (notice.context == every_context) throw;
                session_.net().abort(in_context(notice, inner_));  // for ranks that are in a collective
                throw_error(in_context(std::move(notice), session_.context()));
            }
        });
    }
    /// Ends the run on all ranks: this rank `does` it.
    [[gnu::cold]] void leave(const char* does) noexcept {
        try {
            session_.net().abort(scene().of_self({does}));
        } catch (...) {  // all contexts have ended
        }
    }

    [[gnu::cold]] detail::scene scene() const {
        const std::uint64_t round = round_.load(std::memory_order_relaxed);
        return session_.scene(round, 0, std::string(name_) + " (round " + std::to_string(round) + ")");
    }

  private:
    template <class Session, class Machine, class Host>
    friend void run_machine(const Session&, machine_channels, Machine&, machine_action, Host&);
    using message = typename Net::message;

    /// A failure of what the protocol is built on is one of this session. If one of the two groups has failed, ranks
    /// that had noticed it are missing here.
    [[gnu::cold]] abort_notice own(abort_notice notice) {
        if (notice.context == every_context) return notice;
        for (const std::uint64_t group : {inner_, outer_})
            if (const auto first = session_.net().aborted(group)) notice = *first;
        const bool is_of_round = notice.context == inner_ && notice.operation > operations_before_;
        if (is_of_round && notice.kind == failure::timeout) notice = of_missing(std::move(notice));
        notice.operation = machine_.round();
        notice.first_tag = 0;
        return notice;
    }
    /// A rank that has not entered a collective of the round has not joined the round: says why. Any other notice
    /// stays.
    [[gnu::cold]] abort_notice of_missing(abort_notice notice) {
        const rank_t missing = notice.culprit;
        if (!answers(missing))
            return scene().notice(failure::timeout, missing, session_.rank(), {"rank ", missing, " does not answer"});
        return has_joined(missing, end_of_patience()) ? notice : without_start(path_of(missing));
    }
    static abort_notice in_context(abort_notice notice, std::uint64_t context) {
        notice.context = context;
        return notice;
    }

    buffer frame(const machine_action& asked) const {
        return empty_frame(session_.stamped({}, asked.kind, asked.number));
    }

    wire::header head_of(const message& got) const {
        if constexpr (MonitoredTransport<Net>)
            if (got.pieces().size_bytes() < wire::header_bytes) return require_life(got);
        return read_from(*this, got.source(), [&] {
            const wire::header head = frame_reader(got.pieces()).peek();
            session_.require_own(head);
            wire::detail::require(head.kind.protocol == start_kind::start.protocol, "it is of another protocol");
            const bool is_to_oneself = head.kind == start_kind::pushed || head.kind == start_kind::urged;
            wire::detail::require(!is_to_oneself || got.source() == session_.rank(), "only its own rank sends it");
            return head;
        });
    }
    /// What becomes of a rank ends the run if the rank has ended or is silent, and is of no kind otherwise.
    [[gnu::cold]] wire::header require_life(const message& got) const {
        const peer_change change = read_peer_event(got).kind;
        const rank_t rank = got.source();
        if (change == peer_change::ended)
            scene().fail(failure::exception, rank, no_rank, {"rank ", rank, " has ended"});
        if (change == peer_change::silent)
            scene().fail(failure::timeout, rank, session_.rank(), {"rank ", rank, " is silent: is the link cut?"});
        return {};
    }

    static void keep(message&&, const wire::header&) {}
    /// `asked.peer` starts no round. A collective that holds it up fails at about this time, and names the reason.
    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        session_.net().inquire(asked.peer, inner_, last_tag, end_of_patience());
        throw_error(has_joined(asked.peer, end_of_patience())
                        ? without_start(path_of(session_.rank()))
                        : session_.waited_in_vain(scene(), asked.peer, ", which starts no round"));
    }

    /// The ranks by which the start of the round comes to `rank`, from it to the coordinator.
    [[gnu::cold]] std::vector<rank_t> path_of(rank_t rank) const {
        std::vector<rank_t> path;
        for (; rank != no_rank; rank = machine_.parent_of(rank)) path.push_back(rank);
        return path;
    }
    /// Why the first of `path` has not joined the round that others have joined: the link is at fault on which the
    /// start was lost.
    [[gnu::cold]] abort_notice without_start(const std::vector<rank_t>& path) {
        const time_point until = end_of_patience();
        for (const rank_t each : path) has_joined(each, deadline::immediate);  // all questions are under way at once
        std::size_t at = 0;
        while (at + 1 < path.size() && !has_joined(path[at + 1], until)) ++at;
        const rank_t parent = at + 1 < path.size() ? path[at + 1] : no_rank;
        const std::string told =
            parent == no_rank ? std::string() : text_of({", whose start rank ", parent, " has sent it"});
        return scene().notice(failure::timeout, path[at], parent == no_rank ? session_.rank() : parent,
                              {"rank ", path[at], " has not joined the round", told});
    }
    /// Whether `rank` answers that it has joined the round before, as all have: if not, the link to it is at fault.
    bool answers(rank_t rank) {
        return session_.net().inquire(rank, session_.context(), machine_.round(), end_of_patience()).has_value();
    }
    bool has_joined(rank_t rank, deadline until) {
        const auto said = session_.net().inquire(rank, session_.context(), machine_.round() + 1, until);
        return said && !has_departed(said);
    }
    time_point end_of_patience() const { return std::as_const(session_.net()).now() + session_.timeout() / 8; }

    const char* name_;
    std::uint64_t outer_;
    std::uint64_t inner_;
    std::uint64_t operations_before_ = 0;  ///< the round under way
    std::atomic<std::uint64_t> round_{0};  ///< which is read where a rank leaves, by another activity
    session<Net> session_;
    start_machine<Start> machine_;
};

}}}  // namespace rill::RILL_ABI::detail
