#pragma once

#include <rill/collective/detail/delivery_machine.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/stream/detail/kept_room.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Operations have the tags of their numbers, and none has the last tag. On it arrives what concerns all operations:
/// the messages of detours, and what becomes of peers, where the group monitors.
inline constexpr std::uint32_t shared_tag = ~std::uint32_t{0};

/// Carries the messages of a lane's operations by whatever way (see `delivery_machine`), and remembers from operation
/// to operation which links are silent. Takes the place of the exchange where a schedule is run.
///
/// All operations of the lane share one channel: whoever is in a later operation can tell that an earlier one is over.
/// Each message is copied once for each time that it is sent, and once for all.
template <class Net, class Shape>
class detours {
  public:
    using message = typename Net::message;
    static constexpr std::size_t skipped = wire::header_bytes;  ///< of what it receives; see `arrival`

    void begin(exchange<Net>& call, const Shape& shape) {
        if (call_ == nullptr) {
            call_ = &call;
            machine_ = delivery_machine<Shape>(shape, call.net().size(), call.net().rank());
            for (rank_t peer = 0; peer < call.net().size(); ++peer)
                if (peer != call.net().rank()) others_.add(peer);
            expected_.assign(static_cast<std::size_t>(call.net().size()), 0);
        }
        arrived_.clear();
        used_ = 0;
        for (std::uint32_t& each : expected_) each = 0;
        machine_.begin(call.signature().number, now());
        plain_vector<message> early = std::move(early_);
        early_ = {};
        for (message& each : early) take(std::move(each));
        flush();
    }

    void send(int, rank_t peer, const byte_pieces& pieces) {
        buffer& kept = new_place();
        kept.resize(wire::header_bytes);
        for (const byte_view piece : pieces) kept.append(piece.begin(), piece.end());
        machine_.post(peer, used_ - 1, kept.size(), now());
        flush();
    }
    void expect(rank_t, std::span<const byte_span>) {}

    message receive(rank_t peer) {
        std::uint32_t& due = expected_[static_cast<std::size_t>(peer)];
        const auto has_come = [&] { return find(peer, due) < arrived_.size(); };
        call_->wait_for(peer, [&](deadline until) { return pump(peer, until, has_come); });
        arrival_place& place = arrived_[find(peer, due++)];
        message taken(std::move(place.content));
        place = std::move(arrived_.back());
        arrived_.pop_back();
        return taken;
    }

    /// Waits until all ranks have all that is theirs.
    void finish() {
        machine_.leave(now());
        flush();
        while (!machine_.is_over()) {
            const rank_t peer = machine_.waits_for();
            call_->wait_for(peer, [&](deadline until) {
                return pump(peer, until, [&] { return machine_.is_over() || machine_.waits_for() != peer; });
            });
        }
    }

    /// Whether this rank's link to `peer` is silent.
    bool is_silent(rank_t peer) const { return !others_.empty() && machine_.is_silent(peer); }
    void describe(receipt& of) const {
        of.detours = machine_.detours();
        of.silent_links = 0;
        for (const rank_t peer : others_.all()) of.silent_links += machine_.is_silent(peer) ? 1 : 0;
    }

  private:
    struct arrival_place {
        rank_t origin = no_rank;
        std::uint32_t sequence = 0;
        message content;
    };

    time_point now() const { return std::as_const(call_->net()).now(); }
    channel on() const { return call_->of().on(shared_tag); }

    buffer& new_place() {
        if (used_ == kept_.size()) kept_.add({});
        return kept_[used_++];
    }
    std::size_t find(rank_t origin, std::uint32_t sequence) const {
        std::size_t i = 0;
        while (i < arrived_.size() && (arrived_[i].origin != origin || arrived_[i].sequence != sequence)) ++i;
        return i;
    }

    /// Sends and receives until `is_done()`, which it returns, or until `until`. Waits for `peer`.
    template <class Done>
    bool pump(rank_t peer, deadline until, Done&& is_done) {
        for (;;) {
            flush();
            if (is_done()) return true;
            require_presence();
            require_way(peer);
            flush();
            const deadline due{machine_.next_due()};
            auto got = call_->net().receive(others_.all(), on(), due < until ? due : until);
            if (got) {
                call_->count({0, 0, 1, got->pieces().size_bytes()});
                take(std::move(*got));
            } else if (now() >= until.at) {
                return false;
            }
            if (machine_.next_due() <= now()) machine_.pass(now());
        }
    }

    void take(message got) {
        const rank_t source = got.source();
        if (got.pieces().size_bytes() == peer_event_bytes) {
            const peer_event event = read_from(*call_, source, [&] { return read_peer_event(got); });
            if (event.kind == peer_change::ended) ended_.add(source);
            machine_.lose(source, event.kind == peer_change::silent || event.kind == peer_change::ended);
            return;
        }
        const delivery_note note = read_from(*call_, source, [&] { return note_of(got); });
        switch (machine_.on(note, source, now())) {
            case delivery_machine<Shape>::verdict::deliver:
                arrived_.add({note.origin, note.sequence, std::move(got)});
                break;
            case delivery_machine<Shape>::verdict::forward: {
                buffer copy = kept_room(got.pieces().size_bytes());
                for (const byte_view piece : got.pieces()) copy.append(piece.begin(), piece.end());
                post(note.destination(), std::move(copy));
                break;
            }
            case delivery_machine<Shape>::verdict::look:
                call_->net().inquire(static_cast<rank_t>(note.sequence), call_->context(), note.number,
                                     deadline::immediate);
                break;
            case delivery_machine<Shape>::verdict::later: early_.add(std::move(got)); break;
            case delivery_machine<Shape>::verdict::done: break;
        }
    }

    /// A rank that has ended before the operation was over is a failure. While this rank only waits for the end, others
    /// may have heard of it, and ended: then only the rank that it waits for counts, which would have said so.
    void require_presence() const {
        if (machine_.is_over()) return;
        for (const rank_t peer : ended_.all())
            if (!machine_.is_leaving() || machine_.waits_for() == peer)
                call_->scene().fail(failure::exception, peer, no_rank, {"rank ", peer, " has ended"});
    }

    /// The transport has told that `peer` is silent, and no rank can carry anything for it.
    void require_way(rank_t peer) {
        if (!machine_.is_out_of_reach(peer, now())) return;
        const rank_t self = call_->net().rank();
        call_->scene().fail(failure::exception, peer, self,
                            {"rank ", self, " waits for rank ", peer,
                             ", of which no rank hears anything: it hangs, or its links are cut"});
    }

    void flush() {
        auto& letters = machine_.outbox();
        for (const auto& each : letters) {
            const bool has_content = each.note.kind == delivery_kind::data;
            buffer bytes = kept_room(has_content ? kept_[each.handle].size() : 0);
            if (has_content)
                bytes = kept_[each.handle];
            else
                bytes.resize(wire::header_bytes);
            wire::encode(head_of(each.note), bytes.data());
            post(each.to, std::move(bytes));
        }
        letters.clear();
    }
    /// What finds no room is as good as lost, and sent again.
    void post(rank_t to, buffer&& bytes) {
        const std::size_t size = bytes.size();
        if (call_->net().post(to, on(), std::move(bytes))) call_->count({1, size, 0, 0});
    }

    wire::header head_of(const delivery_note& note) const {
        wire::header head{.element = element_type::int32,
                          .index_bytes = 4,
                          .call = note.sequence,
                          .age = static_cast<std::uint32_t>(note.origin),
                          .contributors = static_cast<std::uint32_t>(note.target)};
        head.codes.indices = index_coding::dense;
        return call_->of().stamped(head, note.kind, note.number);
    }
    delivery_note note_of(const message& got) const {
        const byte_pieces pieces = got.pieces();
        const auto size = static_cast<std::uint32_t>(call_->net().size());
        wire::detail::require(pieces.count() > 0 && pieces[0].size() >= wire::header_bytes, "it has no header");
        const wire::header head = wire::decode(pieces[0].data());
        call_->of().require_own(head);
        wire::detail::require(delivery_kind::is_known(head.kind), "it is no delivery");
        wire::detail::require(head.age < size && head.contributors < size, "it is of a rank outside the group");
        return {head.kind, static_cast<rank_t>(head.age), static_cast<rank_t>(head.contributors), head.call,
                head.number};
    }

    exchange<Net>* call_ = nullptr;
    delivery_machine<Shape> machine_;
    plain_vector<rank_t> others_;
    plain_vector<std::uint32_t> expected_;  ///< of each rank, the sequence of its next message
    plain_vector<buffer> kept_;             ///< the messages of the operation, as they were first sent
    std::size_t used_ = 0;
    plain_vector<arrival_place> arrived_;
    plain_vector<message> early_;  ///< of the next operation
    plain_vector<rank_t> ended_;   ///< where the group monitors
};

/// Runs a schedule on a state as `execute` does; by detours if the lane's topology names them.
template <class Lane, class Net, Schedule Plan, ScheduleState<Net> State>
void execute_on(Lane& lane, exchange<Net>& call, const Plan& plan, State& state, [[maybe_unused]] receipt& result) {
    if constexpr (DetouringTopology<typename Lane::topology_type>) {
        auto& by = lane.template workspace<detours<Net, typename Lane::topology_type>>();
        by.begin(call, lane.shape());
        run_rounds(call, by, schedule_view(plan), state_view<Net>(state));
        by.finish();
        by.describe(result);
    } else {
        execute(call, plan, state);
    }
}

}}}  // namespace rill::RILL_ABI::detail
