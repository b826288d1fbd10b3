#pragma once

#include <rill/collective/detail/membership.hpp>
#include <rill/collective/detail/task.hpp>
#include <rill/collective/lane.hpp>
#include <rill/collective/request.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// An activity with a lane of its own. It runs started operations one after the other.
///
/// `task_`, `result_` and `failure_` belong to the worker from the push to `jobs_` until `done_` is set, and to the
/// group's activity otherwise. A request may outlive the group and keep its worker: after `end` nothing here refers to
/// the group.
template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class worker final : public pending {
  public:
    explicit worker(membership<Net, Shape, Exec>& of)
        : net_(&of.session.net()), lane_(of), jobs_(*net_), done_(*net_), thread_(net_->spawn([this] { serve(); })) {}
    ~worker() override { end(); }

    /// Whether it can take another operation, once nobody holds the request of the present one.
    bool is_usable() const { return !has_ended_; }
    /// The number of its operation in errors and on the wire.
    std::uint64_t number() const { return numbers_.in_context; }

    template <class Body>
    void start(const operation_numbers& numbers, Body&& body) {
        task_.emplace(std::forward<Body>(body));
        done_.reset();
        failure_ = nullptr;
        is_performed_ = is_done_ = false;
        numbers_ = numbers;
        try {
            jobs_.push(numbers);
        } catch (...) {
            task_.reset();
            is_performed_ = is_done_ = true;
            throw;
        }
    }

    bool await(deadline until) noexcept override {
        if (is_done_) return true;
        try {
            if (!done_.wait(until)) return false;
        } catch (...) {
            // All contexts have ended, or this activity has: the operation has ended as well, or is ended now.
            abort("abandoned it because of an exception");
            end_thread();
        }
        is_done_ = true;
        return true;
    }

    time_point now() const override { return std::as_const(*net_).now(); }

    void cancel(const char* why) noexcept override {
        if (!await(deadline::immediate)) abort(why);
    }

    receipt take() override {
        if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
        return result_;
    }

    /// Cancels the operation if it is unfinished, and ends the activity.
    void end() noexcept {
        cancel("abandoned it: its group was destroyed");
        await(deadline::never);
        end_thread();
    }

  private:
    void serve() noexcept {
        try {
            while (const auto numbers = jobs_.pop(deadline::never)) {
                perform(*numbers);
                done_.set();
            }
        } catch (...) {  // all contexts have ended
        }
    }

    void perform(const operation_numbers& numbers) noexcept {
        try {
            result_ = lane_.run_started(numbers, task_);
        } catch (...) {
            failure_ = std::current_exception();
        }
        task_.reset();
        is_performed_ = true;
    }

    void abort(const char* why) noexcept { lane_.abandon(numbers_, why); }

    void end_thread() noexcept {
        if (has_ended_) return;
        has_ended_ = true;
        jobs_.close();
        thread_.join();
        if (!is_performed_) perform(numbers_);  // it has not begun and fails now, so that a codec keeps its input
    }

    Net* net_;
    lane<Net, Shape, Exec> lane_;
    task<lane<Net, Shape, Exec>> task_;
    receipt result_{};
    std::exception_ptr failure_{};
    bool is_performed_ = true;
    bool is_done_ = true;  ///< the operation is done, and the group's activity knows it
    bool has_ended_ = false;
    operation_numbers numbers_{};
    typename Net::template queue<operation_numbers> jobs_;
    typename Net::event done_;
    typename Net::activity thread_;
};

/// The workers of a group: as many as operations have ever been in flight at once.
template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class crew {
  public:
    explicit crew(membership<Net, Shape, Exec>& of) : of_(&of) {
        of.crew = this;
        of.wait_for_room = [](void* self, std::uint64_t number) { static_cast<crew*>(self)->make_room(number); };
    }
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew() {
        for (const auto& each : workers_) each->end();
    }

    template <class Body>
    request start(Body&& body) {
        const operation_numbers next = of_->last.next();
        of_->make_room(next.in_context);
        const shared<member>& chosen = idle_member();
        chosen->start(next, std::forward<Body>(body));
        of_->last = next;
        return request(chosen);
    }

  private:
    using member = worker<Net, Shape, Exec>;

    void make_room(std::uint64_t number) {
        for (const auto& each : workers_)
            if (each->number() + calls_remembered / 2 <= number) each->await(deadline::never);
    }

    /// The first worker without a request. The first ones are reused most, so their scratch already has the right size.
    const shared<member>& idle_member() {
        for (const auto& each : workers_)
            if (each.is_only_owner() && each->is_usable()) return each;
        return workers_.emplace_back(new member(*of_));
    }

    membership<Net, Shape, Exec>* of_;
    std::vector<shared<member>> workers_;
};

}}}  // namespace rill::RILL_ABI::detail
