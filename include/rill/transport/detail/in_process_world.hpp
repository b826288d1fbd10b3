#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_board.hpp>
#include <rill/transport/detail/in_process_mailbox.hpp>
#include <rill/transport/detail/in_process_rank_state.hpp>
#include <rill/transport/detail/in_process_waits.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process {

/// How the ranks of a run wait, and how many bytes may lie undelivered. Results do not depend on these options.
struct options {
    /// Bound of the bytes handed over to one rank and not yet taken by it. Borrowed bytes do not count.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// The places for ranks, if there are more than ranks that start: free until `endpoint::start` takes one.
    int seats = 0;
    /// A wait first polls this often (about 40 ns each) if there are at least as many cores as threads.
    int spins = 16;
    /// After the spins, a wait gives its core away this often, then sleeps.
    int yields = 200;

    friend bool operator==(const options&, const options&) = default;
};

namespace detail {

/// What the ranks share: their messages, the calls that they announce, and how they wait.
class world : public waits {
  public:
    [[gnu::noinline]] world(int ranks, const options& chosen)
        : waits(std::max(ranks, chosen.seats), {.spins = chosen.spins, .yields = chosen.yields}),
          mailbox_bytes_(chosen.mailbox_bytes) {
        threads_changed(ranks - size());
    }

    detail::boards& boards() { return boards_; }

    /// Posts a borrowed message; null when the receiver has closed the context.
    [[gnu::noinline]] node* post(rank_t from, rank_t to, channel on, const byte_pieces& pieces) {
        rank_state& target = at(to);
        node* posted = nullptr;
        {
            const std::lock_guard lock(target.mutex);
            if (takes(target, from, on)) posted = &target.box.borrow(from, to, on, pieces);
        }
        at(from).messages.sent(pieces.size_bytes());
        if (posted != nullptr) target.bells.of(on).ring();
        return posted;
    }

    [[gnu::noinline]] bool post(rank_t from, rank_t to, channel on, buffer&& bytes, deadline until) {
        const std::size_t size = bytes.size();
        const auto attempt = [&] { return try_hand_over(from, to, on, std::move(bytes)); };
        if (!attempt()) {
            if (until.is_immediate()) return false;
            const room_request waiting(at(to), from);
            if (!wait_commonly(from, on, until, attempt)) return false;
        }
        at(from).messages.sent(size);
        at(to).bells.of(on).ring();
        return true;
    }

    /// Null when `until` has passed.
    node* receive(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        return receive_by(self, peers, on, until, [&](mailbox& box) { return box.take(peers, on); });
    }
    node* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        return receive_by(self, peers, on, until, [&](mailbox& box) {
            return box.take_latest(peers, on, [this](node& dropped) { release(dropped); });
        });
    }

    /// Called by the receiver when it will not read the message again.
    [[gnu::noinline]] void release(node& read) noexcept {
        if (!read.borrowed) {
            buffer().swap(read.owned);
            at(read.receiver).box.retire(read);
            return;
        }
        const rank_t source = read.source;  // once released, the node may be in use again
        const channel on = read.on;
        const unsigned before = read.marks.fetch_or(node::released, std::memory_order_acq_rel);
        if ((before & node::abandoned) != 0)
            at(read.receiver).box.retire(read);
        else if ((before & node::awaited) != 0)
            at(source).bells.of(on).ring();
    }

    /// Called by the sender to withdraw a message; true when nobody will read it any more.
    [[gnu::noinline]] bool withdraw(node& posted) noexcept {
        rank_state& target = at(posted.receiver);
        const std::lock_guard lock(target.mutex);
        return target.box.withdraw(posted);
    }

    [[gnu::noinline]] void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        {
            const std::lock_guard lock(at(self).mutex);
            at(self).calls.announce(context, call);
        }
        // No wake-up is lost: an inquirer that looked before this lock had counted itself before.
        tell_all();
    }

    /// The call that a rank has announced or exposed under `number`.
    [[gnu::noinline]] std::optional<call_signature> announced(rank_t rank, std::uint64_t context,
                                                              std::uint64_t number) {
        {
            const std::lock_guard lock(at(rank).mutex);
            if (const auto call = at(rank).calls.entered(context, number)) return call;
        }
        return boards_.entered(context, rank, number);
    }

    [[gnu::noinline]] std::optional<call_signature> inquire(rank_t self, rank_t peer, std::uint64_t context,
                                                            std::uint64_t number, deadline until) {
        const inquirer waiting(*this);
        const call_signature departed{.number = number, .kind = operation::departure};
        std::optional<call_signature> answer;
        const auto look = [&] {
            const bool has_ended = at(peer).has_ended.test();
            answer = announced(peer, context, number);
            if (!answer && has_ended) answer = announced_later(peer, context, number);
            if (!answer && has_ended) answer = departed;
            return answer.has_value();
        };
        if (wait_commonly(self, {context, tag_of(number)}, until, look)) return answer;
        return announced_later(peer, context, number);
    }

    [[gnu::noinline]] void close(rank_t self, std::uint64_t context) {
        rank_state& own = at(self);
        const std::lock_guard lock(own.mutex);
        own.calls.close(context);
        own.watch.forget(context);
        own.box.drop_context(context, [this](node& dropped) { release(dropped); });
        offer_room(own);
    }

    [[gnu::noinline]] std::uint64_t next_context(rank_t self, std::uint64_t key) {
        const std::lock_guard lock(at(self).mutex);
        return at(self).calls.next_context(key);
    }

    // --- what becomes of ranks

    std::uint64_t incarnation(rank_t rank) { return at(rank).incarnation.load(std::memory_order_acquire); }
    /// As `self` knows it: as it is.
    std::uint64_t incarnation([[maybe_unused]] rank_t self, rank_t peer) { return incarnation(peer); }

    [[gnu::noinline]] void monitor(rank_t self, channel on) {
        rank_state& own = at(self);
        {
            const std::lock_guard lock(own.mutex);
            own.monitors.test_and_set();
            own.watch.watch(on);
            for (rank_t peer = 0; peer < size(); ++peer) {
                if (peer == self || !at(peer).has_ended.test()) continue;
                if (own.watch.ends(peer))
                    tell(own, self, peer, peer_change::ended);
                else if (!own.watch.is_fenced(peer))
                    say(own, self, peer, on, peer_change::ended);
            }
        }
        own.bells.ring_all();
    }

    [[gnu::noinline]] void fence(rank_t self, rank_t peer, std::uint64_t life) {
        if (life == 0 || life != incarnation(peer)) return;
        rank_state& own = at(self);
        {
            const std::lock_guard lock(own.mutex);
            own.watch.fence(peer);
            own.box.drop_source(peer, [this](node& dropped) { release(dropped); });
            offer_room(own);
        }
        own.bells.ring_all();
    }

    /// A rank takes its seat; false where it is not free.
    [[gnu::noinline]] bool take_seat(rank_t rank) {
        static std::atomic<std::uint64_t> lives{0};
        std::uint64_t none = 0;
        const std::uint64_t life = ++lives << 16U | static_cast<std::uint16_t>(rank + 1);
        if (!at(rank).incarnation.compare_exchange_strong(none, life, std::memory_order_seq_cst,
                                                          std::memory_order_seq_cst))
            return false;
        {
            const std::lock_guard lock(at(rank).mutex);
            at(rank).is_free = false;
        }
        tell_others(rank, peer_change::arrived);
        return true;
    }

    /// Who can start ranks.
    struct starter {
        bool (*start)(void* context, rank_t rank) = nullptr;
        void* context = nullptr;
    };
    void set_starter(starter chosen) { starter_ = chosen; }
    [[gnu::noinline]] bool start(rank_t rank) const { return starter_.start(starter_.context, rank); }

    /// The body of this rank has returned, after all that it sent.
    [[gnu::noinline]] void end(rank_t rank) {
        at(rank).has_ended.test_and_set();
        tell_others(rank, peer_change::ended);
        tell_all();
    }
    /// The body of this rank has thrown: ends all contexts of the ranks that do not monitor.
    [[gnu::cold, gnu::noinline]] void fail(rank_t rank, const abort_notice& failure) {
        at(rank).failure.emplace(failure);
        abort(rank, failure);
        end(rank);
    }

    /// Counts traffic without messages, the same amount in each direction.
    void count(rank_t rank, std::uint64_t messages, std::uint64_t bytes) {
        at(rank).accesses.fetch_add(messages, std::memory_order_relaxed);
        at(rank).bytes_accessed.fetch_add(bytes, std::memory_order_relaxed);
    }
    [[gnu::noinline]] traffic counted(rank_t rank) {
        const rank_state& own = at(rank);
        constexpr auto relaxed = std::memory_order_relaxed;
        const std::uint64_t accesses = own.accesses.load(relaxed), bytes = own.bytes_accessed.load(relaxed);
        return own.messages.now() += {accesses, bytes, accesses, bytes};
    }

  private:
    /// Whether a message finds its receiver's mailbox: not in a closed context, through a fence, or at a free seat.
    bool takes(const rank_state& target, rank_t from, channel on) const {
        return !target.calls.is_closed(on.context) && !target.watch.is_fenced(from) && !target.is_free;
    }

    [[gnu::noinline]] void tell_others(rank_t rank, peer_change change) {
        for (rank_t peer = 0; peer < size(); ++peer) {
            rank_state& other = at(peer);
            {
                const std::lock_guard lock(other.mutex);
                if (peer == rank || !other.monitors.test()) continue;
                if (change == peer_change::ended && !other.watch.ends(rank)) continue;
                tell(other, peer, rank, change);
            }
            other.bells.ring_all();
        }
    }
    [[gnu::noinline]] void tell(rank_state& other, rank_t peer, rank_t of, peer_change change) {
        if (other.watch.is_fenced(of)) return;
        for (const channel on : other.watch.channels()) say(other, peer, of, on, change);
    }
    [[gnu::noinline]] void say(rank_state& other, rank_t peer, rank_t of, channel on, peer_change change) {
        other.box.hand_over(of, peer, on, to_message({.kind = change, .incarnation = incarnation(of)}));
    }

    /// The latest call that a rank has announced or exposed, from `number` on.
    [[gnu::cold, gnu::noinline]] std::optional<call_signature> announced_later(rank_t rank, std::uint64_t context,
                                                                               std::uint64_t number) {
        const auto exposed = boards_.entered_later(context, rank, number);
        const std::lock_guard lock(at(rank).mutex);
        const auto announced = at(rank).calls.entered_or_later(context, number);
        if (!exposed || !announced) return exposed ? exposed : announced;
        return exposed->number < announced->number ? announced : exposed;
    }

    bool try_hand_over(rank_t from, rank_t to, channel on, buffer&& bytes) {
        rank_state& target = at(to);
        const std::lock_guard lock(target.mutex);
        if (!takes(target, from, on)) {
            buffer().swap(bytes);
            return true;
        }
        const std::size_t held = target.box.held_bytes();
        if (held != 0 && (held > mailbox_bytes_ || bytes.size() > mailbox_bytes_ - held)) return false;
        target.box.hand_over(from, to, on, std::move(bytes));
        return true;
    }

    [[gnu::noinline]] node* receive_by(rank_t self, std::span<const rank_t> peers, channel on, deadline until,
                                       function_ref<node*(mailbox&)> take) {
        rank_state& own = at(self);
        node* found = nullptr;
        bool in_vain = false, have_failed = false;
        wait(self, on, until, [&] {
            const std::lock_guard lock(own.mutex);
            found = take(own.box);
            if (found != nullptr) offer_room(own);
            in_vain = found == nullptr && own.watch.waits_in_vain(peers, on);
            have_failed =
                found == nullptr && own.monitors.test() && !own.watch.is_open(on.context) && all_failed(peers);
            return found != nullptr || in_vain || have_failed;
        });
        if (in_vain) throw_error(rill::detail::notice_of_ends(self, peers, on));
        if (have_failed) throw_failure(peers[0], on);
        if (found != nullptr) own.messages.received(found->pieces.size_bytes());
        return found;
    }

    bool all_failed(std::span<const rank_t> peers) {
        for (const rank_t peer : peers)
            if (!at(peer).has_ended.test() || !at(peer).failure) return false;
        return !peers.empty();
    }
    [[noreturn, gnu::cold, gnu::noinline]] void throw_failure(rank_t of, channel on) {
        abort_notice notice = *at(of).failure;
        notice.context = on.context;
        throw_error(notice);
    }

    void offer_room(rank_state& own) {
        for (const rank_t sender : own.awaiting_room) at(sender).bells.common().ring();
    }

    std::size_t mailbox_bytes_;
    starter starter_{};
    alignas(64) detail::boards boards_;  ///< not on the cache line of what waits and `tell_all` read
};

}  // namespace detail
}}}  // namespace rill::RILL_ABI::in_process
