#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>

#include <cstddef>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// An operation that has been started, as its request sees it.
class pending {
  public:
    pending() = default;
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;
    virtual ~pending() = default;

    /// Waits until the operation is done or `until` has passed, and returns whether it is done.
    virtual bool await(deadline until) noexcept = 0;
    virtual time_point now() const = 0;
    /// Aborts the group unless the operation is done. `why` follows "rank r" in the error message.
    virtual void cancel(const char* why) noexcept = 0;
    /// Once the operation is done: returns its receipt or throws its failure.
    virtual receipt take() = 0;

  private:
    template <class Pending>
    friend class shared;

    int owners_ = 0;
};

/// A shared owner of a `pending`: the last owner deletes it. All owners belong to one activity, so the count need not
/// be atomic. Not `std::shared_ptr`: `<memory>` would add a tenth to what rill.hpp costs a translation unit.
template <class Pending>
class shared {
  public:
    shared() = default;
    explicit shared(Pending* of) : of_(of) { hold(); }
    template <class Other>
    shared(const shared<Other>& other) : of_(other.get()) {
        hold();
    }
    shared(const shared& other) : of_(other.of_) { hold(); }
    shared(shared&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    shared& operator=(shared other) noexcept {
        std::swap(of_, other.of_);
        return *this;
    }
    ~shared() {
        if (of_ != nullptr && --owners() == 0) delete of_;
    }

    Pending* get() const { return of_; }
    Pending* operator->() const { return of_; }
    bool is_only_owner() const { return owners() == 1; }
    friend bool operator==(const shared& a, std::nullptr_t) { return a.of_ == nullptr; }

  private:
    int& owners() const { return static_cast<pending*>(of_)->owners_; }
    void hold() const {
        if (of_ != nullptr) ++owners();
    }

    Pending* of_ = nullptr;
};
}  // namespace detail

/// An operation that goes on while its caller does something else. Until it is done, its memory must stay valid: the
/// caller must not change what it reads and must not read what it writes.
///
/// Requests may be waited for in any order, which may differ from rank to rank. A request belongs to the activity that
/// uses its group; it may outlive the group, but not the transport.
///
/// Destroying the request of an unfinished operation, or assigning another request to it, cancels the operation. It
/// returns when the operation no longer uses the memory lent to it. Like an exception that leaves a blocking call, it
/// ends the group with this rank as the culprit, unless the group has failed before, and never waits for a rank that
/// does not come.
class [[nodiscard]] request {
  public:
    /// A request without an operation.
    request() = default;
    explicit request(detail::shared<detail::pending> of) : of_(std::move(of)) {}
    request(request&&) noexcept = default;
    request& operator=(request&& other) noexcept {
        request replaced(std::move(other));
        std::swap(of_, replaced.of_);
        return *this;
    }
    ~request() { abandon(); }

    /// Whether it has an operation: from the start until `get`.
    bool is_valid() const noexcept { return of_ != nullptr; }

    /// Whether the operation is done, successfully or not. In simulated time, looking too early costs what the network
    /// says.
    bool test() const { return wait_until(deadline::immediate); }

    /// Returns when the operation is done, successfully or not.
    void wait() const { wait_until(deadline::never); }

    /// Waits for at most `at_most` and returns whether the operation is done.
    bool wait_for(duration at_most) const {
        require_operation();
        return wait_until(of_->now() + at_most);
    }

    /// Waits, and returns what the blocking call would have returned, or throws what it would have thrown. Afterwards
    /// the request has no operation.
    receipt get() {
        wait();
        const detail::shared<detail::pending> done = std::move(of_);
        return done->take();
    }

    /// Ends the operation unless it is done. No rank can leave a collective alone: all ranks of the group end with this
    /// one as the culprit, or with that of a failure before, and `get` throws that failure. Does not wait for the
    /// operation. If the transport needs messages to find out whose failure was the first, it waits for that (mpi: at
    /// most `options::abort_timeout`).
    void cancel() const {
        require_operation();
        of_->cancel("has cancelled it");
    }

  private:
    void require_operation() const {
        RILL_EXPECTS(is_valid(), "request: it has no operation, or its result was already taken");
    }

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
