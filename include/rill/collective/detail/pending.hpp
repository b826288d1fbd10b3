#pragma once

#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>

namespace rill::inline RILL_ABI::detail {

/// An operation that has been started, as its request sees it.
class pending {
  public:
    pending() = default;
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;
    virtual ~pending() = default;

    /// Whether it is done; waits until then or until `until`.
    virtual bool await(deadline until) noexcept = 0;
    virtual time_point now() const = 0;
    /// Aborts the group unless it is done. `why`: "rank r ...".
    virtual void cancel(const char* why) noexcept = 0;
    /// Once it is done: its receipt, or its failure as an exception.
    virtual receipt take() = 0;
};

}  // namespace rill::inline RILL_ABI::detail
