#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The objects of this process whose state a running operation changes. No object may serve two operations at a time,
/// whatever their groups and ranks.
///
/// Any thread may lend and give back. If two threads lend the same object at once, at most one succeeds: each enters
/// the object before it looks for another entry of it. The address of an object selects the few places where it can be
/// entered, so that operations of different threads seldom touch the same cache line.
class loans {
  public:
    class loan {
      public:
        loan() = default;
        loan(loan&& other) noexcept : place_(other.place_) { other.place_ = nullptr; }
        loan& operator=(loan&& other) noexcept {
            std::swap(place_, other.place_);
            return *this;
        }
        ~loan() {
            if (place_ != nullptr) place_->store(nullptr);
        }

      private:
        friend loans;
        explicit loan(std::atomic<const void*>* place) : place_(place) {}

        std::atomic<const void*>* place_ = nullptr;
    };

    /// `message`: the text of the contract violation if `object` is lent already.
    [[gnu::noinline]] loan lend(const void* object, [[maybe_unused]] const char* message) {
        const std::size_t first = mix64(reinterpret_cast<std::uintptr_t>(object)) % sets * ways;
        for (std::size_t i = first; i < first + ways; ++i) {
            const void* nobody = nullptr;
            if (!places_[i].compare_exchange_strong(nobody, object)) continue;
            loan entered(&places_[i]);
            RILL_EXPECTS(count(object, first) == 1, message);
            return entered;
        }
        return {};  // not checked: thousands of operations are in flight
    }

  private:
    static constexpr std::size_t sets = 512, ways = 8;

    std::size_t count(const void* object, std::size_t first) const {
        std::size_t found = 0;
        for (std::size_t i = first; i < first + ways; ++i) found += places_[i].load() == object ? 1U : 0U;
        return found;
    }

    std::atomic<const void*> places_[sets * ways]{};
};

inline loans lent_objects;

/// Reserves an object whose state an operation changes, until the returned loan is destroyed.
inline loans::loan lend(const void* object, const char* message) { return lent_objects.lend(object, message); }

}}}  // namespace rill::RILL_ABI::detail
