#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/coordinated_kind.hpp>
#include <rill/protocol/detail/coordinator_machine.hpp>
#include <rill/protocol/detail/coordinator_service.hpp>
#include <rill/protocol/detail/exchange_machine.hpp>
#include <rill/protocol/detail/exchanged_model.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/wire.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A worker of a gossip with a coordinator: an `exchange_machine` on a transport. It stands between the machine and its
/// loop, and counts the traffic.
template <Transport Net>
class exchange_links {
  public:
    using message = typename Net::message;

    exchange_links(const session<Net>& of, const coordinated_limits& limits)
        : session_(of), limits_(limits), machine_(of.size(), limits) {
        if constexpr (MonitoredTransport<Net>) of.net().monitor(of.on(to_mixing_workers));
    }

    const exchange_machine& machine() const { return machine_; }
    const traffic& counted() const { return counted_; }
    const traffic& with_coordinator() const { return with_coordinator_; }

    /// Before the first round: goes on as after so many.
    void resume_at(std::uint64_t round) { machine_.resume_at(round); }
    void join(bool needs_model) { run(machine_.join(needs_model, now()), nullptr); }
    void exchange(exchanged_model<Net>& model) { run(machine_.exchange(now()), &model); }
    void leave() { run(machine_.leave(now()), nullptr); }
    /// What a newcomer has been given.
    message take_given() {
        message given = std::move(*given_);
        given_.reset();
        return given;
    }

    time_point now() const { return std::as_const(session_.net()).now(); }
    [[gnu::cold]] detail::scene scene() const {
        return session_.scene(machine_.order().round, 0, text_of({"gossip (round ", machine_.order().round, ")"}));
    }
    /// Throws what has ended this rank's part alone, if anything has.
    void require_part() const {
        if (machine_.is_out()) throw_out();
        if (!machine_.is_abandoned()) return;
        session_.require_ground(0, session_.timeout() / 8);
        scene().fail(failure::exception, 0, session_.rank(), {"rank 0, the coordinator, has ended"});
    }

  private:
    template <class Session, class Machine, class Host>
    friend void run_machine(const Session&, machine_channels, Machine&, machine_action, Host&);

    [[noreturn, gnu::cold]] void throw_out() const {
        scene().fail(failure::timeout, session_.rank(), 0,
                     {"rank ", session_.rank(), " has not reported its round within ", limits_.patience.seconds(),
                      " s, and the others go on without it; join takes it back"});
    }

    void run(const machine_action& first, exchanged_model<Net>* model) {
        model_ = model;
        run_machine(session_, session_.on(to_mixing_workers), *this, first, *this);
    }

    machine_action on(const machine_event& event, time_point at) {
        const bool is_sent = event.happened == machine_event::what::sent;
        const bool has_come = event.happened == machine_event::what::arrived && event.bytes >= wire::header_bytes;
        for (traffic* const each : {&counted_, &with_coordinator_}) {
            if (each == &with_coordinator_ && coordinated_kind::is_between_workers(event.head.kind)) continue;
            if (is_sent) each->sent(event.bytes);
            if (has_come) each->received(event.bytes);
        }
        return machine_.on(event, at);
    }
    auto neighbours(segment from) const { return machine_.neighbours(from); }

    channel channel_of(message_kind kind) const {
        return session_.on(coordinated_kind::is_to_coordinator(kind) ? to_coordinator : to_mixing_workers);
    }
    buffer frame(const machine_action& asked) {
        wire::header head = session_.stamped({}, asked.kind, asked.number);
        if (asked.kind == coordinated_kind::values) return model_->values(head);
        if (asked.kind == coordinated_kind::model) return model_->whole_model(head);
        if (asked.kind == coordinated_kind::join) head.weight = machine_.needs_model() ? 1 : 0;
        if (asked.kind == coordinated_kind::report && machine_.has_values()) model_->check(*slot(asked.number));
        if (asked.kind == coordinated_kind::report) machine_.report().write_to(head);
        return empty_frame(head);
    }
    wire::header head_of(const message& got) const {
        return head_of_message(session_, got, *this, &coordinated_kind::of, [&](const wire::header& head) {
            require_due(coordinated_kind::is_between_workers(head.kind) ||
                        (got.source() == 0 && coordinated_kind::is_from_coordinator(head.kind)));
        });
    }
    std::optional<message>& slot(std::uint64_t round) { return got_[static_cast<std::size_t>(round % 2)]; }
    void keep(message&& got, const wire::header& head) {
        if (head.kind == coordinated_kind::values)
            slot(head.number) = std::move(got);
        else if (head.kind == coordinated_kind::model)
            given_ = std::move(got);
        else
            model_->mix(*slot(head.number - 1));
    }

    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        const rank_t self = session_.rank();
        if (asked.reason == exchange_machine::model_is_missing)
            scene().fail(failure::timeout, machine_.order().other, self,
                         {"rank ", self, " joins, and has not got the model of rank ", machine_.order().other});
        session_.require_ground(0, session_.timeout() / 8);
        scene().fail(failure::timeout, 0, self,
                     {"rank 0, the coordinator, has told rank ", self, " nothing for ",
                      (limits_.patience + limits_.timeout).seconds(), " s"});
    }

    const session<Net>& session_;
    coordinated_limits limits_;
    exchange_machine machine_;
    exchanged_model<Net>* model_ = nullptr;
    std::array<std::optional<message>, 2> got_{};  ///< values, by round
    std::optional<message> given_{};
    traffic counted_{};
    traffic with_coordinator_{};
};

}}}  // namespace rill::RILL_ABI::detail
