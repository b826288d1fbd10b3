#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_control.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_rank_state.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>

#include <cstddef>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The ranks, and the room in their mailboxes for buffers that are handed over.
class rooms : public control {
  public:
    rooms(int ranks, const network& chosen)
        : control(ranks, chosen), ranks_(static_cast<std::size_t>(ranks)), mailbox_bytes_(chosen.mailbox_bytes) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    traffic counted(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)].counted; }

  protected:
    rank_state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    bool reserve_room(rank_t peer, channel on, std::size_t bytes, deadline until) {
        rank_state& receiver = at(peer);
        if (receiver.calls.is_closed(on.context) || (receiver.posting.empty() && fits(receiver, bytes))) {
            receiver.handed_over += bytes;
            return true;
        }
        if (passed(until)) return poll(), false;
        throw_if_ended(on);
        wait_record what{.kind = waits_for::room, .peers = {&peer, 1}, .on = on, .amount = bytes};
        const wake outcome = scheduler_.wait(receiver.posting, what, until);
        if (outcome != wake::called) offer_room(receiver);  // those that wait behind may need less
        return concluded(outcome, what);
    }

    /// Gives free room to those who wait for it, in order, so that nobody overtakes them.
    void offer_room(rank_state& receiver) noexcept {
        while (strand* next = receiver.posting.first()) {
            if (!fits(receiver, next->waiting->amount)) return;
            admit(receiver, *next);
        }
    }
    void admit(rank_state& receiver, strand& poster) noexcept {
        receiver.handed_over += poster.waiting->amount;
        scheduler_.call(poster);
    }

  private:
    bool fits(const rank_state& receiver, std::size_t bytes) const {
        return receiver.handed_over == 0 ||
               (receiver.handed_over <= mailbox_bytes_ && bytes <= mailbox_bytes_ - receiver.handed_over);
    }

    std::vector<rank_state> ranks_;
    std::size_t mailbox_bytes_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
