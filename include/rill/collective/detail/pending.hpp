#pragma once

#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>

#include <cstddef>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

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

}}}  // namespace rill::RILL_ABI::detail
