#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A pool of reusable objects with stable addresses. After a `reset`, `take` hands them out in the order in which they
/// were first taken. Allocates only when more objects are in use than ever before.
template <class T>
class pool {
  public:
    pool() = default;
    pool(pool&& other) noexcept : objects_(std::exchange(other.objects_, {})), taken_(std::exchange(other.taken_, 0)) {}
    pool& operator=(pool other) noexcept {
        std::swap(objects_, other.objects_);
        std::swap(taken_, other.taken_);
        return *this;
    }
    ~pool() {
        for (T* each : objects_) delete each;
    }

    /// The next free object, in the state in which its last user left it.
    T& take() {
        if (taken_ == objects_.size()) {
            objects_.reserve(taken_ + 1);
            objects_.push_back(new T());
        }
        return *objects_[taken_++];
    }
    /// Marks all objects as free.
    void reset() { taken_ = 0; }

  private:
    std::vector<T*> objects_;
    std::size_t taken_ = 0;
};

}}  // namespace rill::RILL_ABI
