#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The activity in which a rank serves a replica, beside the one that computes, and how it has ended. The activity that
/// computes calls its members.
template <class Net>
class service_run {
  public:
    explicit service_run(Net& net) : net_(&net), over_(net) {}

    /// Runs `serve()`, whose exception is the run's failure, and then `close()`. Later calls do nothing. Throws what
    /// `resume` has thrown.
    template <class Serve, class Close>
    void begin(Serve serve, Close close) {
        if (activity_) return;
        rethrow_failure();
        activity_.emplace(net_->spawn([this, serve, close] {
            try {
                serve();
            } catch (...) {
                failure_ = std::current_exception();
            }
            over_.set();
            close();
        }));
    }
    /// Runs `restore()`. If it throws, the run cannot begin.
    template <class Restore>
    void resume(Restore&& restore) {
        try {
            restore();
        } catch (...) {
            failure_ = std::current_exception();
            throw;
        }
    }

    bool has_begun() const { return activity_.has_value(); }
    /// Whether the run has ended or failed. After an abort of all contexts, which ends the activity, it waits for that.
    bool is_over() const {
        try {
            return over_.wait(deadline::immediate);
        } catch (const error&) {
            if (!net_->aborted(every_context)) throw;
            if (activity_) activity_->join();
            return has_begun();
        }
    }
    /// Whether it ends before the run does; for destructors.
    bool is_cut_short() const noexcept {
        try {
            return !is_over();
        } catch (...) {  // this rank has ended
            return true;
        }
    }
    /// Waits for the end of the run.
    void wait() const { over_.wait(deadline::never); }
    /// Waits for the end of the activity.
    void join() { activity_.reset(); }

    /// Once the run is over: throws what has ended it early, if anything has.
    void rethrow_failure() const {
        if (failure_ != nullptr) std::rethrow_exception(failure_);
    }

  private:
    Net* net_;
    mutable typename Net::event over_;
    std::exception_ptr failure_{};
    mutable std::optional<typename Net::activity> activity_{};
};

}}}  // namespace rill::RILL_ABI::detail
