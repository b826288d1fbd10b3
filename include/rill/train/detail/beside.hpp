#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <exception>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// An activity of this rank that runs one job at a time beside the rank's own work.
template <ConcurrentTransport Net>
class beside {
  public:
    explicit beside(Net& net) : jobs_(net), done_(net), thread_(net.spawn([this] { serve(); })) {}
    beside(const beside&) = delete;
    beside& operator=(const beside&) = delete;
    ~beside() { jobs_.close(); }

    /// Runs `job()` beside `work()`, returns when both are over, and throws what either has thrown: of `work`, if both
    /// have. Once all contexts have ended, `job()` comes first, to throw why.
    template <class Job, class Work>
    void run(const Job& job, Work&& work) {
        if (has_ended_) {
            job();
            work();
            return;
        }
        call_ = [](const void* of) { (*static_cast<const Job*>(of))(); };
        job_ = &job;
        failure_ = nullptr;
        done_.reset();
        jobs_.push(0);
        try {
            work();
        } catch (...) {
            wait();
            throw;
        }
        wait();
        if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

  private:
    void serve() noexcept {
        try {
            while (jobs_.pop(deadline::never)) {
                try {
                    call_(job_);
                } catch (...) {
                    failure_ = std::current_exception();
                }
                done_.set();
            }
        } catch (...) {  // all contexts have ended
        }
    }
    void wait() {
        try {
            done_.wait(deadline::never);
        } catch (...) {  // all contexts have ended, and the job with them
            has_ended_ = true;
            jobs_.close();
            thread_.join();
            if (failure_ == nullptr) throw;
        }
    }

    void (*call_)(const void*) = nullptr;
    const void* job_ = nullptr;
    std::exception_ptr failure_{};
    bool has_ended_ = false;  ///< all contexts, and the activity with them
    typename Net::template queue<int> jobs_;
    typename Net::event done_;
    typename Net::activity thread_;
};

}}}  // namespace rill::RILL_ABI::train::detail
