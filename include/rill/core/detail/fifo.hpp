#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What is added first leaves first. Its memory stays: where as much leaves as is added, it allocates nothing, unlike
/// `std::deque`.
template <class T>
class fifo {
  public:
    bool empty() const { return first_ == items_.size(); }
    T& front() { return items_[first_]; }
    const T& front() const { return items_[first_]; }
    auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
    auto end() { return items_.end(); }

    void push_back(T value) {
        if (items_.size() == items_.capacity() && 2 * first_ >= items_.size()) forget_gone();
        items_.push_back(std::move(value));
    }
    void pop_front() {
        if (++first_ == items_.size()) forget_gone();
    }
    void erase(typename std::vector<T>::iterator at) {
        if (at == begin()) return pop_front();
        items_.erase(at);
    }

  private:
    void forget_gone() {
        items_.erase(items_.begin(), begin());
        first_ = 0;
    }

    std::vector<T> items_;
    std::size_t first_ = 0;  ///< those before it are gone
};

}}}  // namespace rill::RILL_ABI::detail
