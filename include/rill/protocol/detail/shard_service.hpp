#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/model_shard.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/protocol/detail/server_machine.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// One server of a parameter server: a `server_machine` and its part of the model, on a transport.
template <Transport Net, Element T, Staleness Age, class Move>
class shard_service {
  public:
    /// `patience`: how long it waits to hear from any worker; `first`: its part of the model at the beginning.
    shard_service(const session<Net>& of, int workers, duration patience, const Age& age, const Move& move,
                  std::span<const T> first)
        : session_(of),
          patience_(patience),
          machine_(age, workers, of.timeout(), patience),
          shard_(move, first, workers) {
        if constexpr (MonitoredTransport<Net>) of.net().monitor(of.on(to_servers));
    }

    /// Serves until the run is over. A failure is not told to the others yet.
    void run() {
        const machine_channels on{session_.on(to_servers), session_.on(to_workers)};
        run_machine(session_, on, machine_, machine_.begin(std::as_const(session_.net()).now()), *this);
    }

    /// What it serves; of another activity only while no push can come.
    model_shard<T, Move>& shard() { return shard_; }
    const model_shard<T, Move>& shard() const { return shard_; }

    [[gnu::cold]] detail::scene scene() const { return session_.scene(0, 0, "parameter_server (server)"); }

  private:
    template <class Session, class Machine, class Host>
    friend void run_machine(const Session&, machine_channels, Machine&, machine_action, Host&);
    using message = typename Net::message;
    using machine_type = server_machine<Age>;

    buffer frame(const machine_action& asked) {
        const wire::header head = session_.stamped({}, asked.kind, asked.number);
        if (asked.kind == server_kind::answer || asked.kind == server_kind::final)
            return shard_.answer(head, asked.peer);
        return empty_frame(asked.kind == server_kind::late ? late_for(asked.peer, head) : head);
    }
    /// Says who is late: `call`; by how many pushes: `age`; whether it has ended: `contributors` is 0; and whether it
    /// has begun: `weight` is 1.
    wire::header late_for(rank_t asker, wire::header head) const {
        const rank_t late = machine_.late_for(asker);
        if (late == no_rank) return head;
        const std::uint64_t own = machine_.clock_of(asker), its = machine_.clock_of(late);
        head.call = static_cast<std::uint32_t>(late);
        head.age = static_cast<std::uint32_t>(own - std::min(own, its));
        head.contributors = machine_.has_ended(late) ? 0 : 1;
        head.weight = machine_.has_begun(late) ? 1 : 0;
        return head;
    }

    wire::header head_of(const message& got) const {
        return head_of_message(session_, got, *this, &server_kind::of,
                               [](const wire::header& head) { require_due(server_kind::is_to_server(head.kind)); });
    }

    void keep(message&& got, const wire::header& head) {
        read_from(*this, got.source(), [&] {
            if (head.kind == server_kind::push)
                shard_.take_push(got.source(), head, got.pieces());
            else
                shard_.take_question(got.source(), head, got.pieces());
        });
    }

    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        if (asked.reason == machine_type::push_is_missing)
            scene().refuse(asked.peer, {"has pushed ", asked.number, " times, of which ", machine_.clock_of(asked.peer),
                                        " have arrived"});
        scene().fail(failure::timeout, asked.peer, session_.rank(),
                     {"rank ", session_.rank(), ", a server, has heard from no worker for ", patience_.seconds(),
                      " s; rank ", asked.peer, " has not ended its work"});
    }

    const session<Net>& session_;
    duration patience_;
    machine_type machine_;
    model_shard<T, Move> shard_;
};

}}}  // namespace rill::RILL_ABI::detail
