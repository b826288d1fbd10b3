#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/in_process_bell.hpp>
#include <rill/transport/detail/in_process_notice_board.hpp>
#include <rill/transport/detail/in_process_rank_state.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// Set while this thread runs an activity; the flag says whether the activity's waits must throw.
inline thread_local const std::atomic_flag* stop_requested = nullptr;

/// How ranks wait for each other, and the notices that end their waits.
class waits {
  public:
    using condition = function_ref<bool()>;

    waits(int ranks, polling most)
        : most_(most),
          ranks_(static_cast<std::size_t>(ranks), ranks),
          threads_(ranks),
          cores_(static_cast<int>(std::thread::hardware_concurrency())) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    rank_state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    void threads_changed(int by) { threads_.fetch_add(by, std::memory_order_relaxed); }

    /// Waits at the bell of a channel until `ready()`; false when `until` has passed. Throws when the context has
    /// ended.
    bool wait(rank_t rank, channel on, deadline until, condition ready) {
        return wait_at(at(rank).bells.of(on), rank, on, until, ready);
    }

    /// Waits at the bell of a channel until `ready()`, even when the context has ended.
    [[gnu::cold, gnu::noinline]] void wait_regardless(rank_t rank, channel on, condition ready) {
        wait_regardless_at(at(rank).bells.of(on), ready);
    }

    /// Waits at the rank's common bell until `ready()`; false when `until` has passed. Throws when the context has
    /// ended.
    bool wait_commonly(rank_t rank, channel on, deadline until, condition ready) {
        return wait_at(at(rank).bells.common(), rank, on, until, ready);
    }

    /// Waits at `where` for another activity of the same rank. Meanwhile this thread does not count as one that needs a
    /// core.
    bool meet(bell& where, rank_t rank, deadline until, condition ready) {
        struct away {
            waits& of;
            ~away() { of.threads_changed(1); }
        };
        threads_changed(-1);
        const away meanwhile{*this};
        return wait_at(where, rank, {every_context}, until, ready);
    }

    /// Waits for a condition that others make true before they call `tell_all`: polls `ready()` first, and sleeps only
    /// in the end. Once it sleeps, `rarely()` ends it too. False when `until` has passed. All ranks take part in it:
    /// the failure of any ends it.
    [[gnu::noinline]] bool watch(rank_t rank, channel on, deadline until, condition ready, condition rarely) {
        throw_if_ended(rank, on, false);
        const polling most = tries();
        for (int i = 0; i < most.spins * looks_per_spin; ++i) {
            if (ready()) return true;
            bell::pause();
        }
        for (int i = 0; i < most.yields; ++i)
            if (const outlook seen = look_once(rank, on, until, ready); seen != outlook::again)
                return seen == outlook::ready;
        const inquirer counted(*this);
        const auto either = [&] { return ready() || rarely(); };
        return wait_at(at(rank).bells.common(), rank, on, until, either, {}, false);
    }

    /// As `watch`, but polls until `ready()` and never sleeps; for conditions that become true without a ring of a
    /// bell.
    [[gnu::noinline]] bool watch_awake(rank_t rank, channel on, deadline until, condition ready) {
        for (;;)
            if (const outlook seen = look_once(rank, on, until, ready); seen != outlook::again)
                return seen == outlook::ready;
    }

    /// Waits for a condition that others make true before they call `tell_all`, even when the context has ended.
    [[gnu::cold, gnu::noinline]] void watch_regardless(rank_t rank, condition ready) {
        const inquirer counted(*this);
        wait_regardless_at(at(rank).bells.common(), ready);
    }

    /// Wakes those who watch. No wake-up is lost: a watcher counts itself before its last look, and that count and the
    /// condition's store are both sequentially consistent.
    void tell_all() noexcept {
        if (inquirers_.load(std::memory_order_seq_cst) == 0) return;
        for (rank_state& each : ranks_) each.bells.common().ring();
    }

    /// Counts its owner among those whom `tell_all` must wake.
    struct inquirer {
        explicit inquirer(waits& of) : count(of.inquirers_) { count.fetch_add(1, std::memory_order_seq_cst); }
        inquirer(const inquirer&) = delete;
        inquirer& operator=(const inquirer&) = delete;
        ~inquirer() { count.fetch_sub(1, std::memory_order_relaxed); }

        std::atomic<int>& count;
    };

    [[gnu::cold, gnu::noinline]] abort_notice abort(rank_t rank, const abort_notice& notice) {
        const notice_board::added first = notices_.add(notice, at(rank).monitors.test());
        if (first.is_new) ring_all();
        return first.holds;
    }
    std::optional<abort_notice> origin_of(const abort_notice& told) { return notices_.origin_of(told); }
    std::optional<abort_notice> aborted(rank_t rank, std::uint64_t context) {
        return notices_.of({context, last_tag}, at(rank).monitors.test());
    }
    /// The first failure that has ended ranks that do not monitor.
    std::optional<abort_notice> first_failure() { return notices_.of({every_context}, false); }

  private:
    static constexpr int looks_per_spin = 100;  ///< `watch` looks this often per spin of a wait at a bell

    enum class outlook : unsigned char { ready, late, again };

    /// Tests `ready()` once, and gives the core away where it has to be tested again. `late`: `until` has passed.
    [[gnu::noinline]] outlook look_once(rank_t rank, channel on, deadline until, condition ready) {
        throw_if_ended(rank, on, false);
        if (ready()) return outlook::ready;
        if (!until.is_never() && steady_now() >= until.at) return outlook::late;
        bell::yield();
        return outlook::again;
    }

    bool wait_at(bell& own, rank_t rank, channel on, deadline until, condition ready) {
        return wait_at(own, rank, on, until, ready, tries(), at(rank).monitors.test());
    }
    [[gnu::noinline]] bool wait_at(bell& own, rank_t rank, channel on, deadline until, condition ready, polling most,
                                   bool goes_on) {
        for (;;) {
            const std::uint32_t seen = own.strokes();
            throw_if_ended(rank, on, goes_on);
            if (ready()) return true;
            if (until.is_immediate() || !own.wait(seen, until, most)) return false;
        }
    }

    void wait_regardless_at(bell& own, condition ready) {
        while (true) {
            const std::uint32_t seen = own.strokes();
            if (ready()) return;
            own.wait(seen, deadline::never, tries());
        }
    }

    polling tries() const {
        return {threads_.load(std::memory_order_relaxed) <= cores_ ? most_.spins : 0, most_.yields};
    }

    void throw_if_ended(rank_t rank, channel on, bool goes_on) {
        if (!notices_.is_empty() || stop_requested != nullptr) throw_what_ended(rank, on, goes_on);
    }
    /// Throws if there is a notice for `on`, or if this activity has to end.
    [[gnu::cold, gnu::noinline]] void throw_what_ended(rank_t rank, channel on, bool goes_on) {
        if (const auto notice = notices_.of(on, goes_on)) throw_error(*notice);
        if (stop_requested != nullptr && stop_requested->test(std::memory_order_acquire))
            rill::detail::throw_stopped(rank, on.context);
    }

    void ring_all() {
        for (rank_state& each : ranks_) each.bells.ring_all();
    }

    polling most_;
    plain_vector<rank_state> ranks_;
    std::atomic<int> threads_;
    int cores_;
    notice_board notices_;
    alignas(64) std::atomic<int> inquirers_{0};  ///< read by every `tell_all`
};

}}}  // namespace rill::RILL_ABI::in_process::detail
