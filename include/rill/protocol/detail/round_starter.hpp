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
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/start_machine.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

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
    }

    /// Returns when a round has started. `partakers`: the ranks that may contribute, ascending.
    void await(std::uint64_t round, std::span<const rank_t> partakers, const own_readiness& own) {
        const time_point now = std::as_const(session_.net()).now();
        run_machine(session_, session_.on(0), machine_, machine_.begin(round, partakers, own, now), *this);
        session_.net().announce(session_.context(), {.number = round + 1, .kind = operation::all_reduce});
    }

    /// Tells the activity of this rank that waits in `await`: a push or an urge, with its number.
    void notify(message_kind kind, std::uint64_t number) {
        try {
            session_.net().post(session_.rank(), session_.on(0), short_frame(kind, number), deadline::never);
        } catch (const error&) {  // the run has failed, which that activity finds
        }
    }

    /// Runs the body of the protocol. Its failure ends the run on all ranks.
    template <class Body>
    void guarded(Body&& body) {
        session_.guarded(*this, [&] {
            try {
                body();
            } catch (const error& thrown) {
                throw_error(own(thrown.notice()));
            }
        });
    }
    /// Ends the run on all ranks: this rank `does` it.
    [[gnu::cold]] void leave(const char* does) noexcept {
        try {
            session_.net().abort(scene().of_self(does));
        } catch (...) {  // all contexts have ended
        }
    }

    [[gnu::cold]] detail::scene scene() const {
        return session_.scene(machine_.round(), 0,
                              std::string(name_) + " (round " + std::to_string(machine_.round()) + ")");
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
        if (notice.context == inner_ && notice.kind == failure::timeout && notice.other == no_rank)
            notice = without_start(notice.culprit);
        notice.context = session_.context();
        notice.operation = machine_.round();
        notice.first_tag = 0;
        return notice;
    }

    buffer short_frame(message_kind kind, std::uint64_t number) const {
        buffer bytes(wire::header_bytes);
        const wire::header empty{
            .element = element_type::int32, .index_bytes = 4, .codes = {.indices = index_coding::dense}};
        wire::encode(session_.stamped(empty, kind, number), bytes.data());
        return bytes;
    }
    buffer frame(const machine_action& asked) const { return short_frame(asked.kind, asked.number); }

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
    /// What becomes of a rank ends the run if the rank has ended, and is of no kind otherwise.
    [[gnu::cold]] wire::header require_life(const message& got) const {
        if (read_peer_event(got).kind == peer_change::ended)
            scene().fail(failure::exception, got.source(), no_rank,
                         "rank " + std::to_string(got.source()) + " has ended");
        return {};
    }

    static std::size_t next_handle() { return 0; }
    static void keep(message&&, const wire::header&) {}
    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        throw_error(has_joined(asked.peer) ? without_start(session_.rank())
                                           : session_.waited_in_vain(scene(), asked.peer, ", which starts no round"));
    }

    /// Why `rank` has not joined the round that others have joined: the link is at fault on which the start was lost.
    [[gnu::cold]] abort_notice without_start(rank_t rank) {
        rank_t parent = machine_.parent_of(rank);
        for (; parent != no_rank && !has_joined(parent); parent = machine_.parent_of(rank)) rank = parent;
        const std::string told =
            parent == no_rank ? "" : ", whose start rank " + std::to_string(parent) + " has sent it";
        return scene().notice(failure::timeout, rank, parent,
                              "rank " + std::to_string(rank) + " has not joined the round" + told);
    }
    bool has_joined(rank_t rank) {
        const std::uint64_t number = machine_.round() + 1;
        const auto said = session_.net().inquire(rank, session_.context(), number, deadline::immediate);
        return said && !has_departed(said);
    }

    const char* name_;
    std::uint64_t outer_;
    std::uint64_t inner_;
    session<Net> session_;
    start_machine<Start> machine_;
};

}}}  // namespace rill::RILL_ABI::detail
