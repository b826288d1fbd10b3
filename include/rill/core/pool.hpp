#pragma once

#include <rill/core/config.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A pool of reusable objects with stable addresses. After a `reset`, `take` hands them out in the order in which they
/// were first taken. Allocates only when more objects are in use than ever before.
template <class T>
class pool {
  public:
    pool() = default;
    pool(pool&& other) noexcept : first_(other.first_), taken_(other.taken_) { other.first_ = other.taken_ = nullptr; }
    pool& operator=(pool other) noexcept {
        std::swap(first_, other.first_);
        std::swap(taken_, other.taken_);
        return *this;
    }
    ~pool() {
        for (link* next = nullptr; first_ != nullptr; first_ = next) {
            next = first_->next;
            delete first_;
        }
    }

    /// The next free object, in the state in which its last user left it.
    T& take() {
        link*& next = taken_ == nullptr ? first_ : taken_->next;
        if (next == nullptr) next = new link();
        taken_ = next;
        return next->object;
    }
    /// Marks all objects as free.
    void reset() { taken_ = nullptr; }

  private:
    struct link {
        T object{};
        link* next = nullptr;
    };

    link* first_ = nullptr;
    link* taken_ = nullptr;  ///< the last one that is in use
};

}}  // namespace rill::RILL_ABI
