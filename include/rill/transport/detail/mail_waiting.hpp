#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/mail_fiber_team.hpp>
#include <rill/transport/detail/mail_post_office.hpp>
#include <rill/transport/detail/mail_turns.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// One rank's post office and the waits at it. Every wait makes progress for all activities.
template <class Port>
class waiting {
  public:
    using options = typename Port::options;
    using node = typename post_office<Port>::node;

    rank_t rank() const { return office_.rank(); }
    int size() const { return office_.size(); }
    Port& through() { return office_.through(); }
    const options& chosen() const { return office_.chosen(); }
    bool is_concurrent() const { return mutex_.is_enabled(); }
    fiber_team& fibers() { return fibers_; }
    const void* this_activity() const {
        return is_concurrent() ? static_cast<const void*>(own_activity) : fibers_.current();
    }
    turns& taking_turns() { return turns_; }

    time_point now() const {
        require_alive();
        return Port::now();
    }

    /// Calls `ready()`, which may take what it waits for, until it is true; false when `until` has passed. Throws when
    /// the context has ended.
    ///
    /// The order of the calls matters. An ended context is looked for first: its waits throw even where what they wait
    /// for has come. `ready` is asked before the deadline is looked at, so that an immediate wait finds what is here. A
    /// step handles at most one note, and after one that moved anything `ready` is asked again: the wait may block in
    /// the port only when the last step, after the last `ready`, has moved nothing.
    template <class Ready>
    bool wait(channel on, deadline until, Ready&& ready, bool sleeps = false) {
        guard lock(mutex_);
        const presence here(waiting_);
        if (++waits_begun_ % 16 == 0 && alive_)
            step_for_all(deadline::immediate);  // makes progress for others even if no wait ever has to wait
        for (std::int64_t looks = 0;;) {
            throw_if_ended(on);
            if (ready()) return true;
            const bool moved = step_for_all(until);
            if (moved && looks_again(until, looks)) continue;
            if (has_passed(until, looks)) {
                if (!moved && until.is_immediate()) lock.keep_quiet();
                if (!moved) return false;
                throw_if_ended(on);
                return ready();
            }
            idle(lock, until, looks++, sleeps, !moved);
        }
    }

    /// For a thread of its own: makes progress while no other thread waits, until `stop`. It looks now and then whether
    /// one does, so that waits need not tell it. What it throws, the next wait throws.
    void attend(const std::atomic<bool>& stop) noexcept
        requires(Port::wakes)
    {
        constexpr duration least_pause = milliseconds(2), most_pause = milliseconds(20);
        std::unique_lock<optional_mutex> lock(mutex_);
        unsigned seen = waits_begun_;
        duration pause = least_pause;
        while (!stop.load(std::memory_order_acquire) && alive_) {
            if (waiting_ != 0 || seen != waits_begun_ || mutex_.comers.load(std::memory_order_relaxed) != 0) {
                pause = seen == waits_begun_ ? std::min(pause + pause, most_pause) : least_pause;
                seen = waits_begun_;
                through().rest(lock, pause);
                continue;
            }
            pause = least_pause;
            try {
                while (step(false)) {
                }
                through().attend(lock);
            } catch (...) {
                thrown_ = std::current_exception();
                through().wake();
                through().rest(lock, most_pause);
            }
            through().wake();
        }
    }
    /// Ends `attend`.
    void dismiss(std::atomic<bool>& stop) noexcept
        requires(Port::wakes)
    {
        const guard lock(mutex_);
        stop.store(true, std::memory_order_release);
        through().dismiss();
    }
    /// Lets all waits look again.
    void rouse() noexcept {
        if constexpr (Port::wakes) const guard lock(mutex_);
    }

    /// Waits until a fiber has finished.
    void see_off(const fiber_team::member& leaving) noexcept {
        guard lock(mutex_);
        for (std::int64_t looks = 0; !leaving.finished; ++looks) {
            try {
                if (alive_ && step()) continue;
            } catch (...) {  // the fiber's own waits throw the same, which ends it
            }
            if (fibers_.is_inside()) {
                fibers_.pass();
                continue;
            }
            fibers_.take_turns();
            turns_.pass(looks, false);
        }
    }

  protected:
    struct entrance : optional_mutex {
        explicit entrance(Port& of) : through(of) {}
        Port& through;
        std::atomic<int> comers{0};  ///< threads that are about to hold the mutex
    };
    /// Holds the mutex. At its end all who wait in the port look again, since anything may have changed.
    class guard {
      public:
        explicit guard(entrance& of) : of_(of) {
            of.comers.fetch_add(1, std::memory_order_relaxed);
            lock();
            of.comers.fetch_sub(1, std::memory_order_relaxed);
        }
        guard(const guard&) = delete;
        guard& operator=(const guard&) = delete;
        ~guard() {
            if constexpr (Port::wakes)
                if (!is_quiet_) of_.through.wake();
            unlock();
        }
        void lock() { of_.lock(); }
        void unlock() { of_.unlock(); }
        /// Nothing has changed.
        void keep_quiet() { is_quiet_ = true; }

      private:
        entrance& of_;
        bool is_quiet_ = false;
    };

    explicit waiting(const typename Port::place& of) : office_(of), mutex_(office_.through()) {}
    ~waiting() = default;

    /// Waits until `ready()`, even when contexts have ended; false when `until` has passed. True also when the port
    /// has ended.
    template <class Ready>
    bool wait_regardless(guard& lock, deadline until, Ready&& ready) {
        const presence here(waiting_);
        for (std::int64_t looks = 0; alive_ && !ready();) {
            const bool moved = step_for_all(until);
            if (moved && looks_again(until, looks)) continue;
            if (has_passed(until, looks)) return moved && ready();
            idle(lock, until, looks++, false, !moved);
        }
        return true;
    }
    /// Waits until `ready()` and ignores errors that other notes cause; false when `until` has passed. True also when
    /// the port has ended or failed, since waiting is then pointless. A port that `wakes` goes on after an error.
    template <class Ready>
    bool outlast(guard& lock, deadline until, Ready&& ready) noexcept {
        for (;;) {
            try {
                return wait_regardless(lock, until, ready);
            } catch (const typename Port::library_error&) {
                if constexpr (!Port::wakes) return true;
            } catch (...) {
            }
            if (has_passed(until, 0)) return false;  // where every step throws
        }
    }

    bool step(bool looks = true) { return office_.progress(looks); }

    void require_alive() const {
        if (!alive_) [[unlikely]]
            throw typename Port::library_error(rank(), Port::outlived);
    }

    post_office<Port> office_;
    entrance mutex_;
    fiber_team fibers_;
    turns turns_;
    bool alive_ = true;

  private:
    /// Counts a thread that waits.
    class presence {
      public:
        explicit presence(int& count) : count_(count) { ++count_; }
        presence(const presence&) = delete;
        presence& operator=(const presence&) = delete;
        ~presence() { --count_; }

      private:
        int& count_;
    };

    /// What a step of one thread has moved, another may wait for. A wait that sleeps in the port looks there.
    bool step_for_all(deadline until) {
        if constexpr (!Port::wakes) return step();
        const bool is_over = until.is_immediate() || (!until.is_never() && Port::now() >= until.at);
        const bool moved = step(is_over);
        if constexpr (Port::wakes)
            if (moved) through().wake();
        return moved;
    }

    void throw_if_ended(channel on) {
        require_alive();
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
        if (const abort_notice* const notice = office_.knowledge().find_notice(on)) throw_error(*notice);
        if (fibers_.must_stop() || (own_activity != nullptr && own_activity->stop.load(std::memory_order_acquire)))
            rill::detail::throw_stopped(rank(), on.context);
    }

    /// Whether a wait looks again at once after a step that has moved something. An immediate wait does so until no
    /// note is left, since what it waits for may lie behind any number of others.
    static bool looks_again(deadline until, std::int64_t& looks) { return until.is_immediate() || looks++ % 64 != 63; }

    /// Whether `until` has passed. An immediate wait still gives the fibers one turn.
    bool has_passed(deadline until, std::int64_t looks) const {
        if (until.is_immediate()) return looks > 0 || !fibers_.any();
        return !until.is_never() && (looks % 8 == 0 || Port::wakes) && Port::now() >= until.at;
    }

    /// Passes the time until the next poll. `blocks`: the wait may block in the port, since nothing has arrived since
    /// `ready()` was last false.
    void idle(guard& lock, deadline until, std::int64_t looks, bool sleeps, bool blocks) {
        if (fibers_.is_inside()) return fibers_.pass();
        if (fibers_.any())
            fibers_.take_turns();
        else if (blocks && may_block(until))
            return office_.through().await_note(lock, until);
        if (until.is_immediate()) return;
        lock.unlock();
        turns_.pass(looks, sleeps);
        lock.lock();
    }
    bool may_block(deadline until) const {
        if constexpr (Port::wakes) return !until.is_immediate();
        const duration beyond = office_.chosen().blocks_beyond;
        return beyond.ns != deadline::never.at.ns && !is_concurrent() && office_.only_waits_for_notes() &&
               until.at - Port::now() > beyond;
    }

    unsigned waits_begun_ = 0;
    int waiting_ = 0;
    std::exception_ptr thrown_;  ///< by a step that no wait made
};

}}}  // namespace rill::RILL_ABI::mail
