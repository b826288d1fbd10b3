#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_bell.hpp>
#include <rill/transport/detail/in_process_board.hpp>
#include <rill/transport/detail/in_process_mailbox.hpp>
#include <rill/transport/detail/in_process_notice_board.hpp>
#include <rill/transport/detail/in_process_rank_state.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI::in_process {

/// How the ranks of a run wait, and how much may lie undelivered. Results do not depend on it.
struct options {
    /// Bound of the bytes handed over to one rank and not yet taken by it. Borrowed bytes are not copied, hence free.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// A wait first polls this often (about 40 ns each) if there are at least as many cores as threads, …
    int spins = 16;
    /// … then gives its core away this often, then sleeps.
    int yields = 200;

    friend bool operator==(const options&, const options&) = default;
};

namespace detail {

/// Set while this thread runs an activity: whether its waits shall end.
inline thread_local const std::atomic<bool>* stop_requested = nullptr;

/// What the ranks share.
class world {
  public:
    world(int ranks, const options& chosen)
        : chosen_(chosen), threads_(ranks), cores_(static_cast<int>(std::thread::hardware_concurrency())) {
        for (int i = 0; i < ranks; ++i) ranks_.push_back(std::make_unique<rank_state>(ranks));
    }

    int size() const { return static_cast<int>(ranks_.size()); }
    rank_state& at(rank_t rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
    void threads_changed(int by) { threads_.fetch_add(by, std::memory_order_relaxed); }

    /// Waits for what is told by the bell of a channel until `ready()`; false when `until` has passed. Throws when the
    /// context has ended.
    template <class Ready>
    bool wait(rank_t rank, channel on, deadline until, Ready&& ready) {
        return wait_at(at(rank).bells.of(on), rank, on.context, until, ready);
    }

    /// The same, whatever has ended.
    template <class Ready>
    void wait_regardless(rank_t rank, channel on, Ready&& ready) {
        for (bell& own = at(rank).bells.of(on);;) {
            const std::uint32_t seen = own.strokes();
            if (ready()) return;
            own.wait(seen, deadline::never, tries());
        }
    }

    /// Waits for what is told by the common bell.
    template <class Ready>
    bool wait(rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        return wait_at(at(rank).bells.common(), rank, context, until, ready);
    }

    /// Waits for another activity of the same rank; so long it leaves its core to that one.
    template <class Ready>
    bool meet(bell& where, rank_t rank, deadline until, Ready&& ready) {
        struct away {
            world& of;
            ~away() { of.threads_changed(1); }
        };
        threads_changed(-1);
        const away meanwhile{*this};
        return wait_at(where, rank, every_context, until, ready);
    }

    /// Waits for what others store and then tell by `tell_all`: looks at it, and sleeps only in the end. Then it also
    /// ends when `rarely()`, which is told in the same way. False when `until` has passed.
    template <class Ready, class Rarely>
    bool watch(rank_t rank, std::uint64_t context, deadline until, Ready&& ready, Rarely&& rarely) {
        throw_if_ended(rank, context);
        const patience most = tries();
        for (int i = 0; i < most.spins * looks_per_spin; ++i) {
            if (ready()) return true;
            bell::pause();
        }
        for (int i = 0; i < most.yields; ++i)
            if (const auto seen = look_once(rank, context, until, ready)) return *seen;
        const inquirer counted(inquirers_);
        const auto either = [&] { return ready() || rarely(); };
        return wait_at(at(rank).bells.common(), rank, context, until, either, {});
    }

    /// The same for what nobody tells.
    template <class Ready>
    bool watch_awake(rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        for (;;)
            if (const auto seen = look_once(rank, context, until, ready)) return *seen;
    }

    /// The same, whatever has ended.
    template <class Ready>
    void watch_regardless(rank_t rank, Ready&& ready) {
        const inquirer counted(inquirers_);
        for (bell& own = at(rank).bells.common();;) {
            const std::uint32_t seen = own.strokes();
            if (ready()) return;
            own.wait(seen, deadline::never, tries());
        }
    }

    /// Wakes those who watch. Whoever sleeps has counted itself before its last look, sequentially consistent, as what
    /// is told must be stored.
    void tell_all() noexcept {
        if (inquirers_.load(std::memory_order_seq_cst) == 0) return;
        for (const auto& each : ranks_) each->bells.common().ring();
    }

    detail::boards& boards() { return boards_; }

    /// Null when the receiver has closed the context.
    node* post(rank_t from, rank_t to, channel on, const byte_pieces& pieces) {
        rank_state& target = at(to);
        node* posted = nullptr;
        {
            const std::lock_guard lock(target.mutex);
            if (!target.calls.is_closed(on.context)) posted = &target.box.borrow(from, to, on, pieces);
        }
        count_sent(from, pieces.size_bytes());
        if (posted != nullptr) target.bells.of(on).ring();
        return posted;
    }

    bool post(rank_t from, rank_t to, channel on, buffer&& bytes, deadline until) {
        const std::size_t size = bytes.size();
        const auto attempt = [&] { return try_hand_over(from, to, on, std::move(bytes)); };
        if (!attempt()) {
            if (until.is_immediate()) return false;
            const room_request waiting(at(to), from);
            if (!wait(from, on.context, until, attempt)) return false;
        }
        count_sent(from, size);
        at(to).bells.of(on).ring();
        return true;
    }

    /// Null when `until` has passed.
    node* receive(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        return receive_by(self, on, until, [&](mailbox& box) { return box.take(peers, on); });
    }
    node* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        return receive_by(self, on, until, [&](mailbox& box) {
            return box.take_latest(peers, on, [this](node& dropped) { release(dropped); });
        });
    }

    /// By the receiver, who will not read the message again.
    void release(node& read) noexcept {
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

    /// By the sender; true when nobody will read the message any more.
    bool withdraw(node& posted) noexcept {
        rank_state& target = at(posted.receiver);
        const std::lock_guard lock(target.mutex);
        return target.box.withdraw(posted);
    }

    void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        {
            const std::lock_guard lock(at(self).mutex);
            at(self).calls.announce(context, call);
        }
        // Whoever looked before the lock has counted itself before that.
        tell_all();
    }

    /// The call that a rank has announced or exposed under that number.
    std::optional<call_signature> announced(rank_t rank, std::uint64_t context, std::uint64_t number) {
        {
            const std::lock_guard lock(at(rank).mutex);
            if (const auto call = at(rank).calls.entered(context, number)) return call;
        }
        const auto shared = boards_.find(context);
        return shared == nullptr ? std::nullopt : shared->entered(rank, number);
    }

    std::optional<call_signature> inquire(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number,
                                          deadline until) {
        const inquirer waiting(inquirers_);
        std::optional<call_signature> answer;
        const auto look = [&] {
            answer = announced(peer, context, number);
            return answer.has_value();
        };
        if (wait(self, context, until, look)) return answer;
        return announced_later(peer, context, number);
    }

    void close(rank_t self, std::uint64_t context) {
        rank_state& own = at(self);
        const std::lock_guard lock(own.mutex);
        own.calls.close(context);
        own.box.drop_context(context, [this](node& dropped) { release(dropped); });
        offer_room(own);
    }

    std::uint64_t next_context(rank_t self, std::uint64_t key) {
        const std::lock_guard lock(at(self).mutex);
        return at(self).calls.next_context(key);
    }

    abort_notice abort(const abort_notice& notice) {
        const auto [first, is_new] = notices_.add(notice);
        if (is_new) ring_all();
        return first;
    }
    std::optional<abort_notice> origin_of(const abort_notice& told) { return notices_.origin_of(told); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return notices_.of(context); }

    /// What has passed without messages, as much in either direction.
    void count(rank_t rank, std::uint64_t messages, std::uint64_t bytes) {
        at(rank).accesses.fetch_add(messages, std::memory_order_relaxed);
        at(rank).bytes_accessed.fetch_add(bytes, std::memory_order_relaxed);
    }
    traffic counted(rank_t rank) {
        const rank_state& own = at(rank);
        constexpr auto relaxed = std::memory_order_relaxed;
        const std::uint64_t accesses = own.accesses.load(relaxed), bytes = own.bytes_accessed.load(relaxed);
        return {own.messages_sent.load(relaxed) + accesses, own.bytes_sent.load(relaxed) + bytes,
                own.messages_received.load(relaxed) + accesses, own.bytes_received.load(relaxed) + bytes};
    }

  private:
    static constexpr int looks_per_spin = 100;  ///< at a word instead of a bell

    /// Counts itself among those who are to be told what any rank does.
    struct inquirer {
        explicit inquirer(std::atomic<int>& of) : count(of) { count.fetch_add(1, std::memory_order_seq_cst); }
        inquirer(const inquirer&) = delete;
        inquirer& operator=(const inquirer&) = delete;
        ~inquirer() { count.fetch_sub(1, std::memory_order_relaxed); }

        std::atomic<int>& count;
    };

    std::optional<call_signature> announced_later(rank_t rank, std::uint64_t context, std::uint64_t number) {
        std::optional<call_signature> latest, exposed;
        if (const auto shared = boards_.find(context)) exposed = shared->entered_later(rank, number);
        const std::lock_guard lock(at(rank).mutex);
        latest = at(rank).calls.entered_or_later(context, number);
        return latest && (!exposed || exposed->number < latest->number) ? latest : exposed;
    }

    /// Looks, and gives the core away; empty when it has neither come nor run out of time.
    template <class Ready>
    std::optional<bool> look_once(rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        throw_if_ended(rank, context);
        if (ready()) return true;
        if (!until.is_never() && steady_now() >= until.at) return false;
        bell::yield();
        return std::nullopt;
    }

    template <class Ready>
    bool wait_at(bell& own, rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        return wait_at(own, rank, context, until, ready, tries());
    }
    template <class Ready>
    bool wait_at(bell& own, rank_t rank, std::uint64_t context, deadline until, Ready&& ready, patience most) {
        for (;;) {
            const std::uint32_t seen = own.strokes();
            throw_if_ended(rank, context);
            if (ready()) return true;
            if (until.is_immediate() || !own.wait(seen, until, most)) return false;
        }
    }

    patience tries() const {
        return {threads_.load(std::memory_order_relaxed) <= cores_ ? chosen_.spins : 0, chosen_.yields};
    }

    void throw_if_ended(rank_t rank, std::uint64_t context) {
        if (const auto notice = aborted(context)) throw_error(*notice);
        if (stop_requested != nullptr && stop_requested->load(std::memory_order_acquire))
            throw_error(
                {.context = context,
                 .culprit = rank,
                 .reason = "rank " + std::to_string(rank) + " left an activity behind: an exception passed it"});
    }

    bool try_hand_over(rank_t from, rank_t to, channel on, buffer&& bytes) {
        rank_state& target = at(to);
        const std::lock_guard lock(target.mutex);
        if (target.calls.is_closed(on.context)) {
            buffer().swap(bytes);
            return true;
        }
        const std::size_t held = target.box.held_bytes();
        if (held != 0 && (held > chosen_.mailbox_bytes || bytes.size() > chosen_.mailbox_bytes - held)) return false;
        target.box.hand_over(from, to, on, std::move(bytes));
        return true;
    }

    template <class Take>
    node* receive_by(rank_t self, channel on, deadline until, Take&& take) {
        rank_state& own = at(self);
        node* found = nullptr;
        wait(self, on, until, [&] {
            const std::lock_guard lock(own.mutex);
            found = take(own.box);
            if (found != nullptr) offer_room(own);
            return found != nullptr;
        });
        if (found != nullptr) {
            own.messages_received.fetch_add(1, std::memory_order_relaxed);
            own.bytes_received.fetch_add(found->pieces.size_bytes(), std::memory_order_relaxed);
        }
        return found;
    }

    void offer_room(rank_state& own) {
        for (const rank_t sender : own.awaiting_room) at(sender).bells.common().ring();
    }

    void count_sent(rank_t from, std::size_t bytes) {
        at(from).messages_sent.fetch_add(1, std::memory_order_relaxed);
        at(from).bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
    }

    void ring_all() {
        for (const auto& each : ranks_) each->bells.ring_all();
    }

    options chosen_;
    std::vector<std::unique_ptr<rank_state>> ranks_;
    std::atomic<int> threads_;
    int cores_;
    detail::boards boards_;
    notice_board notices_;
    alignas(64) std::atomic<int> inquirers_{0};  ///< looked at by whoever tells something
};

}  // namespace detail
}  // namespace rill::inline RILL_ABI::in_process
