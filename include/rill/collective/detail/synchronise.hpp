#pragma once

#include <rill/collective/detail/detours.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The state of a schedule that moves no data: its frames are headers, which say for how many ranks they speak.
template <Transport Net>
class empty_state {
  public:
    using message = typename Net::message;
    static constexpr bool overwrites_nothing = true;

    void begin(exchange<Net>& call, int parts) {
        call_ = &call;
        head_ = frame_header_of(call);
        head_.codes.indices = index_coding::dense;
        come_.assign(static_cast<std::size_t>(parts), contribution_sum{});
        headers_.reset();
    }

    byte_pieces outgoing(part_range parts, action) {
        head_.call = frame_place::of_part(parts.first).in(call_->signature().hash(), {});
        (parts.count() == 0 ? contribution_sum{0, 0, 0} : come(parts.first)).describe(head_);
        const byte_span block = headers_.take(wire::header_bytes);
        wire::encode(head_, block.data());
        return byte_pieces{byte_view(block)};
    }

    void fold(std::span<arrival<message>> arrivals) { take(arrivals, true); }
    void copy(std::span<arrival<message>> arrivals) { take(arrivals, false); }

    contribution_sum total() const { return come_[0]; }

  private:
    void take(std::span<arrival<message>> arrivals, bool adds) {
        for (std::size_t i = 0; i < arrivals.size(); ++i) {
            const contribution_sum given = read(arrivals[i]);
            const part_range parts = arrivals[i].from.parts;
            for (int part = parts.first; part < parts.last; ++part) come(part) = adds ? come(part) + given : given;
        }
    }

    contribution_sum& come(int part) { return come_[static_cast<std::size_t>(part)]; }

    contribution_sum read(const arrival<message>& from) {
        const byte_pieces bytes = from.pieces();
        const wire::header head =
            next_header(*call_, from.from.peer, frame_reader(bytes), frame_place::of_part(from.from.parts.first));
        if (bytes.size_bytes() != wire::header_bytes) call_->refuse(from.from.peer, {"sent data where none was due"});
        return contribution_sum::of(head);
    }

    exchange<Net>* call_ = nullptr;
    wire::header head_{};
    plain_vector<contribution_sum> come_;  ///< to each part
    arena headers_;
};

/// Runs a schedule without data: no rank gets through before all have come.
template <class Lane, class Net, Schedule Plan>
receipt synchronise(Lane& lane, exchange<Net>& call, const Plan& plan) {
    auto& state = lane.template workspace<empty_state<Net>>();
    state.begin(call, plan.parts());
    receipt result{.rounds = plan.rounds()};
    execute_on(lane, call, plan, state, result);
    state.total().describe(result);
    return result;
}

}}}  // namespace rill::RILL_ABI::detail
