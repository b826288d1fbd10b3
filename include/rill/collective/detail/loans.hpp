#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/light_atomic.hpp>
#include <rill/core/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The objects of this process whose state an operation under way changes: none may serve two operations at a time,
/// whichever groups and ranks they are of.
///
/// Any thread may lend and give back. Two that lend the same object at once cannot both succeed: each enters it before
/// it looks for another entry. An object is entered at one of a few places, which depend on its address: operations of
/// different threads seldom touch the same cache line.
class loans {
  public:
    class loan {
      public:
        loan() = default;
        loan(loan&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
        loan& operator=(loan&& other) noexcept {
            std::swap(place_, other.place_);
            return *this;
        }
        ~loan() {
            if (place_ != nullptr) place_->store(nullptr);
        }

      private:
        friend loans;
        explicit loan(light_atomic<const void*>* place) : place_(place) {}

        light_atomic<const void*>* place_ = nullptr;
    };

    /// `message` tells whose contract is broken when `object` is lent already.
    loan lend(const void* object, [[maybe_unused]] const char* message) {
        const std::size_t first = mix64(reinterpret_cast<std::uintptr_t>(object)) % sets * ways;
        for (std::size_t i = first; i < first + ways; ++i) {
            if (!places_[i].replace(nullptr, object)) continue;
            loan entered(&places_[i]);
            RILL_EXPECTS(count(object, first) == 1, message);
            return entered;
        }
        return {};  // thousands are in flight: unchecked
    }

  private:
    static constexpr std::size_t sets = 512, ways = 8;

    std::size_t count(const void* object, std::size_t first) const {
        std::size_t found = 0;
        for (std::size_t i = first; i < first + ways; ++i) found += places_[i].load() == object ? 1U : 0U;
        return found;
    }

    std::array<light_atomic<const void*>, sets * ways> places_{};
};

inline loans lent_objects;

/// Reserves an object whose state an operation changes, until the result is destroyed.
inline loans::loan lend(const void* object, const char* message) { return lent_objects.lend(object, message); }

}}}  // namespace rill::RILL_ABI::detail
