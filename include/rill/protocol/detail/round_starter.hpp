#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/bytes.hpp>
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
    /// `name`: of the protocol, for the session and for messages.
    round_starter(Net& net, const char* name, const Start& trigger, random_key key, duration timeout)
        : name_(name), session_(net, name, timeout), machine_(trigger, session_.size(), session_.rank(), key, timeout) {
        if constexpr (MonitoredTransport<Net>) net.monitor(session_.on(0));
    }

    /// Returns when a round has started. `partakers`: the ranks that may contribute, ascending.
    void await(std::uint64_t round, std::span<const rank_t> partakers, const own_readiness& own) {
        const time_point now = std::as_const(session_.net()).now();
        run_machine(session_, session_.on(0), machine_, machine_.begin(round, partakers, own, now), *this);
    }

    /// Tells the activity of this rank that waits in `await`: a push or an urge, with its number. Never waits.
    void notify(message_kind kind, std::uint64_t number) noexcept {
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
    friend void run_machine(const Session&, channel, Machine&, machine_action, Host&);
    using message = typename Net::message;

    /// A failure of what the protocol is built on is one of this session.
    [[gnu::cold]] abort_notice own(abort_notice notice) const {
        if (notice.context == every_context) return notice;
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
    [[noreturn, gnu::cold]] void fail(const machine_action& asked) const {
        throw_error(session_.waited_in_vain(scene(), asked.peer, ", which starts no round"));
    }

    const char* name_;
    session<Net> session_;
    start_machine<Start> machine_;
};

}}}  // namespace rill::RILL_ABI::detail
