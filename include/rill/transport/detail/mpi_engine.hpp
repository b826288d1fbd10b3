#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mpi_crew.hpp>
#include <rill/transport/detail/mpi_environment.hpp>
#include <rill/transport/detail/mpi_mail_rules.hpp>
#include <rill/transport/detail/mpi_options.hpp>
#include <rill/transport/detail/mpi_post_office.hpp>
#include <rill/transport/detail/mpi_turns.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace rill::inline RILL_ABI::mpi::detail {

/// One rank's post office and those who wait at it: whoever waits makes progress for all. Used by one endpoint after
/// the other.
class engine {
  public:
    explicit engine(MPI_Comm of) : office_(of) {}

    rank_t rank() const { return office_.rank(); }
    int size() const { return office_.size(); }
    const port& through() const { return office_.through(); }
    thread_level level() const { return level_; }
    bool is_concurrent() const { return mutex_.is_enabled(); }
    bool is_alive() const { return alive_; }
    bool is_in_use() const { return in_use_; }
    crew& fibers() { return crew_; }
    turns& patience() { return turns_; }
    const options& chosen() const { return office_.chosen(); }
    /// Of a dense collective; the same on all ranks.
    std::size_t chunk_bytes() const {
        constexpr std::size_t frame_head = 512;  // with room for more than it takes
        if (chosen().chunk_bytes != 0) return chosen().chunk_bytes;
        if (through().shares_memory()) return static_cast<std::size_t>(-1);
        return chosen().eager_bytes - frame_head;
    }

    /// Collective: all ranks do it as often as this one.
    void open(const options& chosen) {
        level_ = granted_level();
        mutex_.enable(level_ == thread_level::multiple);
        turns_.configure(chosen, size());
        office_.open(chosen, ++incarnation_);
        in_use_ = true;
    }
    void close() noexcept {
        const guard lock(mutex_);
        if (alive_) office_.close();
        in_use_ = false;
    }
    /// MPI ends, or the communicator does: what still waits, and later calls, throw. True the first time.
    bool end() noexcept {
        const guard lock(mutex_);
        if (alive_) office_.abandon();
        return std::exchange(alive_, false);
    }
    /// Collective, after `end`.
    void free() { office_.free(); }

    /// Calls `ready()`, which may take what it waits for, until it is true; false when `until` has passed. Throws when
    /// the context has ended.
    template <class Ready>
    bool wait(std::uint64_t context, deadline until, Ready&& ready, bool sleeps = false) {
        guard lock(mutex_);
        if (++found_at_once_ % 16 == 0 && alive_) step();  // who never has to wait must not keep the others waiting
        for (std::int64_t looks = 0;;) {
            throw_if_ended(context);
            if (ready()) return true;
            const bool moved = step();
            if (moved && looks++ % 64 != 63) continue;
            if (has_passed(until, looks)) return false;
            idle(lock, until, looks++, sleeps, !moved);
        }
    }
    /// The same, whatever has ended; returns, too, when MPI has.
    template <class Ready>
    void wait_regardless(deadline until, Ready&& ready) {
        guard lock(mutex_);
        wait_locked(lock, until, ready);
    }

    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces) {
        const guard lock(mutex_);
        require_alive();
        return office_.post(peer, on, pieces);
    }
    bool post(rank_t peer, channel on, buffer& bytes, deadline until) {
        {
            const guard lock(mutex_);
            require_alive();
            if (office_.post(peer, on, bytes)) return true;
        }
        return wait(on.context, until, [&] { return office_.post(peer, on, bytes); });
    }
    bool is_done(std::uint64_t id) {
        const guard lock(mutex_);
        if (!office_.is_done(id) && alive_) step();
        return office_.is_done(id);
    }
    bool await(std::uint64_t id, std::uint64_t context, deadline until) {
        return wait(context, until, [&] { return office_.is_done(id); });
    }
    void await_regardless(std::uint64_t id) noexcept {
        try {
            wait_regardless(deadline::never, [&] { return office_.is_done(id); });
        } catch (...) {  // MPI has failed: nothing can be waited for
        }
    }
    /// True when it is no longer under way.
    bool withdraw(std::uint64_t id) noexcept {
        const guard lock(mutex_);
        try {
            return !alive_ || office_.withdraw(id);
        } catch (...) {
            return true;
        }
    }

    node* receive(std::span<const rank_t> peers, channel on, deadline until) {
        node* found = nullptr;
        wait(on.context, until, [&] { return (found = office_.take(peers, on)) != nullptr; });
        return found;
    }
    node* receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        node* found = nullptr;
        wait(on.context, until, [&] { return (found = office_.take_latest(peers, on)) != nullptr; });
        return found;
    }
    /// The message, which may have been written to the targets (`node::straight`); null when `until` has passed.
    node* receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until);

    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        const guard lock(mutex_);
        require_alive();
        office_.expect({peer, on, targets});
    }
    void forget(channel on) noexcept {
        const guard lock(mutex_);
        try {
            if (alive_) office_.forget(on);
        } catch (...) {  // MPI has failed: nothing comes any more
        }
    }

    void release(node& n) noexcept {
        const guard lock(mutex_);
        office_.release(n);
    }

    void announce(std::uint64_t context, const call_signature& call) {
        const guard lock(mutex_);
        office_.knowledge().calls.announce(context, call);
        if (!office_.knowledge().questions.empty()) office_.answer_questions(context);
    }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until);
    abort_notice abort(const abort_notice& given);
    std::optional<abort_notice> aborted(std::uint64_t context) {
        const guard lock(mutex_);
        const abort_notice* const first = office_.knowledge().find_notice(context);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }
    std::optional<abort_notice> origin_of(const abort_notice& told) {
        const guard lock(mutex_);
        return office_.knowledge().origin_of(told);
    }
    std::uint64_t next_context(std::uint64_t key) {
        const guard lock(mutex_);
        return office_.knowledge().calls.next_context(key);
    }
    void close_context(std::uint64_t context) {
        const guard lock(mutex_);
        if (alive_) office_.close_context(context);
    }
    traffic counted() {
        const guard lock(mutex_);
        return office_.counted();
    }
    /// Says that this rank has ended.
    void leave(bool failed) {
        const guard lock(mutex_);
        require_alive();
        office_.tell(0, {.id = failed ? 1U : 0U, .kind = note::leave});
    }
    /// Returns when all ranks have left: what has ended the run of one that failed.
    std::optional<abort_notice> await_all_left() {
        const control& known = office_.knowledge();
        wait_regardless(deadline::never, [&] {
            return known.all_left && (!known.any_failed || known.find_notice(every_context) != nullptr);
        });
        return known.any_failed ? aborted(every_context) : std::nullopt;
    }

    /// Returns when a fiber has finished.
    void see_off(const crew::member& leaving) noexcept {
        guard lock(mutex_);
        for (std::int64_t looks = 0; !leaving.finished; ++looks) {
            try {
                if (alive_ && step()) continue;
            } catch (...) {  // its own waits throw the same, and end it
            }
            if (crew_.is_inside()) {
                crew_.pass();
                continue;
            }
            crew_.take_turns();
            turns_.pass(looks, false);
        }
    }

    time_point now() const {
        require_alive();
        return wall_clock();
    }

  private:
    using guard = std::unique_lock<optional_mutex>;

    template <class Ready>
    void wait_locked(guard& lock, deadline until, Ready&& ready) {
        for (std::int64_t looks = 0; alive_ && !ready();) {
            if (step()) continue;
            if (has_passed(until, looks)) return;
            idle(lock, until, looks++, false, true);
        }
    }

    bool step() { return office_.progress(); }

    void require_alive() const {
        if (!alive_) [[unlikely]]
            throw library_error(rank(), "the endpoint has outlived MPI, which has been finalised, or its communicator");
    }
    void throw_if_ended(std::uint64_t context) {
        require_alive();
        if (const abort_notice* const notice = office_.knowledge().find_notice(context)) throw_error(*notice);
        if (crew_.must_stop() || (own_task != nullptr && own_task->stop.load(std::memory_order_acquire)))
            throw_error(
                {.context = context,
                 .culprit = rank(),
                 .reason = "rank " + std::to_string(rank()) + " left an activity behind: an exception passed it"});
    }

    /// Who does not want to wait still gives the fibers one turn.
    bool has_passed(deadline until, std::int64_t looks) const {
        if (until.is_immediate()) return looks > 0 || !crew_.any();
        return !until.is_never() && looks % 8 == 0 && wall_clock() >= until.at;
    }

    /// `blocks`: nothing has come since it was last seen that what is waited for is not here.
    void idle(guard& lock, deadline until, std::int64_t looks, bool sleeps, bool blocks) {
        if (crew_.is_inside()) return crew_.pass();
        if (crew_.any())
            crew_.take_turns();
        else if (blocks && may_block(until))
            return office_.through().await_note();
        if (until.is_immediate()) return;
        lock.unlock();
        turns_.pass(looks, sleeps);
        lock.lock();
    }
    bool may_block(deadline until) const {
        const duration beyond = office_.chosen().blocks_beyond;
        return beyond.ns != forever_ns && !is_concurrent() && office_.only_waits_for_notes() &&
               until.at - wall_clock() > beyond;
    }

    post_office office_;
    optional_mutex mutex_;
    crew crew_;
    turns turns_;
    thread_level level_ = thread_level::single;
    std::uint32_t incarnation_ = 0;
    unsigned found_at_once_ = 0;
    bool alive_ = true;
    bool in_use_ = false;
};

/// Only while the message moves, a passed deadline or an abort waits for it: it is being written to the targets.
inline node* engine::receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
    std::size_t room = 0;
    for (const byte_span target : targets) room += target.size();
    node* claimed = nullptr;
    const auto arrives = [&] {
        if (claimed != nullptr && claimed->withdrawn) office_.release(*std::exchange(claimed, nullptr));
        if (claimed == nullptr) claimed = office_.claim(peer, on, targets, room);
        return claimed != nullptr && claimed->is == node::state::complete;
    };
    const auto give_back = [&] {
        const guard lock(mutex_);
        if (claimed != nullptr && alive_) office_.unclaim(*claimed);
    };
    try {
        if (!wait(on.context, until, arrives)) return give_back(), nullptr;
    } catch (...) {
        give_back();
        throw;
    }
    const guard lock(mutex_);
    office_.accept(*claimed);
    return claimed;
}

inline std::optional<call_signature> engine::inquire(rank_t peer, std::uint64_t context, std::uint64_t number,
                                                     deadline until) {
    const control& known = office_.knowledge();
    bool asked = peer == rank();
    std::optional<call_signature> answer;
    const auto look = [&] {
        const rill::detail::call_history* const told = known.told(peer, context);
        answer = peer == rank()    ? known.calls.entered(context, number)
                 : told != nullptr ? told->entered(number)
                                   : std::nullopt;
        if (!answer && !std::exchange(asked, true))
            office_.tell(peer, {.context = context, .id = number, .kind = note::question});
        return answer.has_value();
    };
    if (wait(context, until, look)) return answer;
    const guard lock(mutex_);
    if (peer == rank()) return known.calls.entered_or_later(context, number);
    const rill::detail::call_history* const told = known.told(peer, context);
    return told != nullptr ? told->entered_or_later(number) : std::nullopt;
}

/// Rank 0 says which notice was the first. If it does not in time, this rank tells all ranks itself.
inline abort_notice engine::abort(const abort_notice& given) {
    const abort_notice notice = travelling(given);
    guard lock(mutex_);
    const auto first = [&] { return office_.knowledge().find_notice(notice.context); };
    if (first() != nullptr) return *first();
    if (alive_ && rank() != 0) {
        office_.tell(0, {.kind = note::report}, packed_notice(notice).view());
        wait_locked(lock, wall_clock() + chosen().abort_patience, [&] { return first() != nullptr; });
    }
    if (first() == nullptr && alive_) office_.decide(notice);
    return first() != nullptr ? *first() : notice;
}

}  // namespace rill::inline RILL_ABI::mpi::detail
