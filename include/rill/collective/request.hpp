#pragma once

#include <rill/collective/detail/pending.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI {

/// An operation that goes on while its caller does something else. What it reads and writes must stay valid, what it
/// writes unread and what it reads unchanged, until it is done.
///
/// Requests may be waited for in any order, another one on each rank. A request belongs to the activity that uses its
/// group; it may outlive the group, but not the transport.
///
/// An unfinished operation whose request is destroyed, or assigned another one, is cancelled, and what was lent to it
/// is given back before that returns: like an exception that leaves a blocking call, that ends the group with this rank
/// as the culprit, and never waits for a rank that does not come.
class [[nodiscard]] request {
  public:
    /// Of no operation.
    request() = default;
    explicit request(detail::shared<detail::pending> of) : of_(std::move(of)) {}
    request(request&&) noexcept = default;
    request& operator=(request&& other) noexcept {
        request replaced(std::move(other));
        std::swap(of_, replaced.of_);
        return *this;
    }
    ~request() { abandon(); }

    /// Whether it stands for an operation: from the start until `get`.
    bool is_valid() const noexcept { return of_ != nullptr; }

    /// Whether the operation is done, well or not. In simulated time looking in vain costs what the network says.
    bool test() const { return wait_until(deadline::immediate); }

    /// Returns when the operation is done, well or not.
    void wait() const { wait_until(deadline::never); }

    /// Whether the operation is done, after at most `at_most`.
    bool wait_for(duration at_most) const {
        require_operation();
        return wait_until(of_->now() + at_most);
    }

    /// Waits, and returns what the blocking call would have returned, or throws what it would have thrown. Afterwards
    /// the request is of no operation.
    receipt get() {
        wait();
        const detail::shared<detail::pending> done = std::move(of_);
        return done->take();
    }

    /// Ends the operation unless it is done. No rank can leave a collective alone: all ranks of the group end with this
    /// one as the culprit, and `get` throws the same. Does not wait for the operation; over a transport where it takes
    /// messages to know whose failure was the first, it waits for that (mpi: `options::abort_timeout` at most).
    void cancel() const {
        require_operation();
        of_->cancel("has cancelled it");
    }

  private:
    void require_operation() const { RILL_EXPECTS(is_valid(), "request: of no operation, or got already"); }

    bool wait_until(deadline until) const {
        require_operation();
        return of_->await(until);
    }

    void abandon() noexcept {
        if (of_ == nullptr) return;
        of_->cancel("abandoned it: its request was destroyed");
        of_->await(deadline::never);
        of_ = {};
    }

    detail::shared<detail::pending> of_;
};

}}  // namespace rill::RILL_ABI
