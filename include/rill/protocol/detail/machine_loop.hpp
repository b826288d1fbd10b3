#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/session/detail/long_wait.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a protocol that is a state machine asks of the loop that feeds it. One event answers each but the first and the
/// last kind, so that the machine needs no list of what is still to be done.
struct machine_action {
    enum class ask : unsigned char {
        nothing,   ///< the rank's own call is over
        send,      ///< the message `kind` to `peer`, waiting for room until `until`
        receive,   ///< a message of one of the neighbours `from`, until `until`
        announce,  ///< that this rank waits for `peer`, or with `no_rank` that it waits for nobody any more
        fail       ///< for `reason`, one of the machine's own, because of `peer`
    };
    ask what = ask::nothing;
    bool keeps = false;  ///< the message of the event that this action answers is needed later
    rank_t peer = no_rank;
    message_kind kind{};
    std::uint64_t number = 0;  ///< of the message
    std::uint8_t reason = 0;
    segment from{};  ///< of the machine's `neighbours()`
    deadline until = deadline::immediate;
};

/// What has become of an action.
struct machine_event {
    enum class what : unsigned char { sent, no_room, arrived, nothing_came, announced };
    what happened = what::announced;
    rank_t peer = no_rank;   ///< the receiver or the sender
    wire::header head{};     ///< of a message that arrived; of one that was sent, its kind
    std::size_t bytes = 0;   ///< of the whole message
    std::size_t handle = 0;  ///< stands for the message, if it is kept
};

/// Where the messages of a machine arrive, and where it sends its own.
struct machine_channels {
    channel in;
    channel out;

    constexpr machine_channels(channel both) : in(both), out(both) {}  // NOLINT(google-explicit-constructor)
    constexpr machine_channels(channel arriving, channel sent) : in(arriving), out(sent) {}
};

/// Does what a machine asks, until its call is over. The machine has neither a clock nor a transport: `on(event, now)`
/// returns its next action. So it can be explored without either, and runs alike on all transports.
///
/// `host`, which keeps the messages: `frame(action)` makes the message that is to be sent; `head_of(message)` returns
/// its header, checked, and throws if it is not one of this protocol; `keep(message, head)` keeps one; `fail(action)`
/// throws. Where it has `next_handle()`, the next message is known by that if it is kept; where it has
/// `channel_of(kind)`, messages of that kind go there. The loop itself allocates nothing.
template <class Session, class Machine, class Host>
void run_machine(const Session& session, machine_channels on, Machine& machine, machine_action asked, Host& host) {
    using ask = machine_action::ask;
    using what = machine_event::what;
    auto& net = session.net();
    while (asked.what != ask::nothing) {
        machine_event event{.peer = asked.peer, .head = {.kind = asked.kind}};
        if (asked.what == ask::fail) host.fail(asked);
        if (asked.what == ask::announce)
            session.announce(asked.peer == no_rank ? long_wait{} : long_wait::of_any_order(asked.peer));
        if (asked.what == ask::send) {
            buffer message = host.frame(asked);
            event.bytes = message.size();
            channel out = on.out;
            if constexpr (requires { host.channel_of(asked.kind); }) out = host.channel_of(asked.kind);
            const bool is_sent = net.post(asked.peer, out, std::move(message), asked.until);
            event.happened = is_sent ? what::sent : what::no_room;
        }
        if (asked.what != ask::receive) {
            asked = machine.on(event, net.now());
            continue;
        }
        auto got = net.receive(machine.neighbours(asked.from), on.in, asked.until);
        event.happened = got ? what::arrived : what::nothing_came;
        if (got) {
            event.peer = got->source();
            event.head = host.head_of(*got);
            event.bytes = got->pieces().size_bytes();
            if constexpr (requires { host.next_handle(); }) event.handle = host.next_handle();
        }
        asked = machine.on(event, net.now());
        if (asked.keeps) host.keep(std::move(*got), event.head);
    }
}

}}}  // namespace rill::RILL_ABI::detail
