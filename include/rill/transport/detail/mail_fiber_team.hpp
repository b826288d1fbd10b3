// Activities where the port allows one thread: fibers of the rank's one thread.
#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/mail_fiber.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The state of an activity, which is a thread or a fiber.
struct activity_state {
    std::atomic<bool> stop{false};  ///< its waits must throw
    std::exception_ptr thrown{};
};

/// The activities that take turns on one thread. A fiber that waits gives control back to whoever resumed it; the
/// thread itself, when it waits, resumes all fibers one after the other.
class fiber_team {
  public:
    /// A fiber that runs one job after the other, so that its stack is used again.
    struct member {
        explicit member(fiber_team& of, std::size_t stack_bytes)
            : owner(of), strand(stack_bytes, &member::run_jobs, this) {}

        fiber_team& owner;
        void (*job)(void*) = nullptr;
        void* argument = nullptr;
        activity_state state{};
        bool finished = true;
        fiber strand;

      private:
        static void run_jobs(void* self) {
            for (member& own = *static_cast<member*>(self); own.job != nullptr; own.strand.suspend()) {
                try {
                    own.job(own.argument);
                } catch (...) {
                    own.state.thrown = std::current_exception();
                }
                own.finished = true;
            }
        }
    };

    fiber_team() = default;
    fiber_team(const fiber_team&) = delete;
    fiber_team& operator=(const fiber_team&) = delete;
    ~fiber_team() {
        for (auto& each : idle_) {
            each->job = nullptr;
            each->strand.resume();
        }
    }

    bool any() const { return !busy_.empty(); }
    bool is_inside() const { return current_ != nullptr; }
    const member* current() const { return current_; }
    bool must_stop() const { return current_ != nullptr && current_->state.stop.load(std::memory_order_relaxed); }

    /// Runs `job(argument)` until it waits for the first time.
    member& start(void (*job)(void*), void* argument, std::size_t stack_bytes) {
        if (idle_.empty()) idle_.push_back(std::make_unique<member>(*this, stack_bytes));
        busy_.push_back(std::move(idle_.back()));
        idle_.pop_back();
        member& started = *busy_.back();
        started.job = job;
        started.argument = argument;
        started.finished = false;
        started.state.stop = false;
        resume(started);
        return started;
    }

    /// Called inside a fiber; returns control to whoever resumed it.
    void pass() { current_->strand.suspend(); }

    /// Called outside fibers; resumes each fiber in turn.
    void take_turns() {
        for (std::size_t i = 0; i < busy_.size(); ++i)  // NOLINT(modernize-loop-convert): one may start another
            if (!busy_[i]->finished) resume(*busy_[i]);
    }

    /// Makes a finished fiber free for the next activity.
    void dismiss(member& done) noexcept {
        const auto found =
            std::find_if(busy_.begin(), busy_.end(), [&](const auto& each) { return each.get() == &done; });
        idle_.push_back(std::move(*found));
        busy_.erase(found);
    }

  private:
    void resume(member& next) {
        member* const outer = std::exchange(current_, &next);
        next.strand.resume();
        current_ = outer;
    }

    member* current_ = nullptr;
    std::vector<std::unique_ptr<member>> busy_, idle_;
};

}}}  // namespace rill::RILL_ABI::mail
