#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/light_atomic.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace rill::inline RILL_ABI::detail {

/// The objects whose state an operation under way changes: none may serve two operations at a time.
///
/// Any activity may lend and give back. Two that lend the same object at once cannot both succeed: each enters it
/// before it looks for another entry.
class loans {
  public:
    class loan {
      public:
        loan(loan&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
        loan& operator=(loan&&) = delete;
        ~loan() {
            if (place_ != nullptr) place_->store(nullptr);
        }

      private:
        friend loans;
        explicit loan(light_atomic<const void*>* place) : place_(place) {}

        light_atomic<const void*>* place_;
    };

    /// `message` tells whose contract is broken when `object` is lent already.
    loan lend(const void* object, [[maybe_unused]] const char* message) {
        for (auto& place : places_) {
            if (!place.replace(nullptr, object)) continue;
            loan entered(&place);
            RILL_EXPECTS(count(object) == 1, message);
            return entered;
        }
        return loan(nullptr);  // more than can be in flight: unchecked
    }

  private:
    std::size_t count(const void* object) const {
        std::size_t found = 0;
        for (const auto& place : places_) found += place.load() == object ? 1U : 0U;
        return found;
    }

    std::array<light_atomic<const void*>, calls_remembered> places_{};
};

}  // namespace rill::inline RILL_ABI::detail
