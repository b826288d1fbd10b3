#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/session/session.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What the ranks of an elastic team tell each other, on a transport, and what that tells of them.
template <class Net>
class elastic_mail {
  public:
    elastic_mail(Net& net, duration timeout) : session_(net, "elastic", timeout, session_kind::open) {
        for (rank_t rank = 0; rank < net.size(); ++rank)
            if (rank != net.rank()) others_.push_back(rank);
        net.monitor(messages());
    }

    rank_t rank() const { return session_.rank(); }
    /// How many seats there are.
    rank_t size() const { return net().size(); }
    time_point now() const { return net().now(); }
    /// Of the rank's seat, as the transport tells; 0 where nobody has taken it.
    std::uint64_t life_of(rank_t rank) const { return net().incarnation(rank); }
    /// Whether the run is over.
    bool has_aborted() { return session_.net().aborted(every_context).has_value(); }

    /// `base`: the view that the message's decision ends, if this rank knows it.
    void post(rank_t to, agreement_message message, const view* base = nullptr) {
        session_.net().post(to, messages(), to_message(agreement_frame{life_of(rank()), std::move(message)}, base));
    }
    void obey(const agreement_machine::actions& asked, const agreement_machine& by) {
        for (const agreement_action& each : asked) {
            using ask = agreement_action::ask;
            if (each.what == ask::send) post(each.peer, each.message, by.ended_by(each.message.value));
            if (each.what == ask::probe) session_.net().inquire(each.peer, session_.waits(), 1, deadline::immediate);
            if (each.what == ask::fence) session_.net().fence(each.peer, each.incarnation);
        }
    }
    /// Takes one message, and then all that are there, to `reader.take(from, message)`: a `peer_event` or an
    /// `agreement_frame`. `reader.view()` is the view that it knows. Returns whether there was one.
    template <class Reader>
    bool pump(deadline until, Reader& reader) {
        bool any = false;
        while (auto got = session_.net().receive(std::span<const rank_t>(others_), messages(),
                                                 any ? deadline::immediate : until)) {
            any = true;
            if (got->pieces().size_bytes() == peer_event_bytes)
                reader.take(got->source(), read_peer_event(*got));
            else if (const auto frame = frame_of(*got, reader.view()))
                reader.take(got->source(), *frame);
        }
        return any;
    }

    abort_notice notice(rank_t culprit, std::uint64_t step, std::string reason) const {
        return {.context = session_.context(),
                .operation = step,
                .kind = failure::timeout,
                .culprit = culprit,
                .reason = std::move(reason)};
    }

  private:
    const Net& net() const { return session_.net(); }
    channel messages() const { return session_.on(0); }
    /// What is no message of an agreement counts for nothing: who has sent it waits in vain.
    template <class Message>
    std::optional<agreement_frame> frame_of(const Message& got, const view& known) {
        room_.clear();
        for (const byte_view piece : got.pieces()) room_.append(piece.begin(), piece.end());
        try {
            return read_agreement_frame(room_, size(), known);
        } catch (const protocol_error&) {
            return std::nullopt;
        }
    }

    session<Net> session_;
    std::vector<rank_t> others_{};
    buffer room_{};
};

}}}  // namespace rill::RILL_ABI::detail
