#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/coordinated_kind.hpp>
#include <rill/protocol/detail/coordinator_machine.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The tags of a coordinated gossip's session.
inline constexpr std::uint32_t to_coordinator = 0;
inline constexpr std::uint32_t to_mixing_workers = 1;

/// The coordinator of a gossip: a `coordinator_machine` on a transport.
template <Transport Net, class Bound>
class coordinator_service {
  public:
    /// The workers are the ranks from `first` on.
    coordinator_service(const session<Net>& of, const Bound& mixing, rank_t first, random_key key,
                        const coordinated_limits& limits)
        : session_(of), machine_(mixing, first, of.size(), key, limits) {
        if constexpr (MonitoredTransport<Net>) of.net().monitor(of.on(to_coordinator));
    }

    /// Serves until the run is over. A failure is not told to the others yet.
    void run() {
        run_machine(session_, {session_.on(to_coordinator), session_.on(to_mixing_workers)}, machine_,
                    machine_.begin(std::as_const(session_.net()).now()), *this);
    }

    void resume_at(std::uint64_t round) { machine_.resume_at(round); }
    const Bound& mixing() const { return machine_.mixing(); }
    [[gnu::cold]] detail::scene scene() const { return session_.scene(0, 0, "gossip (coordinator)"); }

  private:
    template <class Session, class Machine, class Host>
    friend void run_machine(const Session&, machine_channels, Machine&, machine_action, Host&);
    using message = typename Net::message;

    buffer frame(const machine_action& asked) {
        wire::header head = session_.stamped({}, asked.kind, asked.number);
        machine_.order_of(asked.peer).write_to(head);
        return empty_frame(head);
    }
    wire::header head_of(const message& got) const {
        return head_of_message(session_, got, *this, &coordinated_kind::of, [](const wire::header& head) {
            require_due(coordinated_kind::is_to_coordinator(head.kind));
        });
    }
    static void keep(message&&, const wire::header&) {}
    /// It never asks for that.
    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        scene().refuse(asked.peer, {"is not waited for"});
    }

    const session<Net>& session_;
    coordinator_machine<Bound> machine_;
};

}}}  // namespace rill::RILL_ABI::detail
