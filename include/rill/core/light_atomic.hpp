#pragma once

#include <rill/core/config.hpp>

#if !defined(__GNUC__)
#include <atomic>
#endif

namespace rill { inline namespace RILL_ABI {

/// An integer or a pointer that threads share, sequentially consistent: `std::atomic` without `<atomic>`, which would
/// be a fifteenth of what rill.hpp costs a translation unit.
template <class T>
class light_atomic {
  public:
    light_atomic() = default;
    light_atomic(const light_atomic&) = delete;
    light_atomic& operator=(const light_atomic&) = delete;

#if defined(__GNUC__)
    T load() const { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
    void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_SEQ_CST); }
    /// Returns what it was before.
    T fetch_add(T by) { return __atomic_fetch_add(&value_, by, __ATOMIC_SEQ_CST); }
    /// Whether it was `expected` and is `wanted` now.
    bool replace(T expected, T wanted) {
        return __atomic_compare_exchange_n(&value_, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }

  private:
    T value_{};
#else
    T load() const { return value_.load(); }
    void store(T value) { value_.store(value); }
    T fetch_add(T by) { return value_.fetch_add(by); }
    bool replace(T expected, T wanted) { return value_.compare_exchange_strong(expected, wanted); }

  private:
    std::atomic<T> value_{};
#endif
};

}}  // namespace rill::RILL_ABI
