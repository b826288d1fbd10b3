#pragma once

#include <rill/core/config.hpp>
#include <rill/core/detail/element_memory.hpp>

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A vector with few members. It costs the compiler a small part of what `std::vector` costs for each type of element:
/// it has one function where that has ten, pointers for iterators, and its memory is compiled once. Objects that are
/// copied as bytes and that users may copy stand in an `aligned_vector`.
template <class T>
class plain_vector {
  public:
    plain_vector() = default;
    /// `count` objects, each of them made from `from`.
    template <class... From>
    explicit plain_vector(std::size_t count, const From&... from) : plain_vector() {
        memory_.reserve(layout, count, 0);
        for (T* at = begin(); size_ < count; ++size_) ::new (static_cast<void*>(at++)) T(from...);
    }
    plain_vector(plain_vector&& other) noexcept { swap(other); }
    plain_vector& operator=(plain_vector&& other) noexcept {
        swap(other);
        return *this;
    }
    ~plain_vector() {
        if constexpr (!std::is_trivially_destructible_v<T>) clear();
        memory_.release(layout);
    }

    /// Room for `room` objects: `add` allocates and throws nothing while there are fewer. Where `reserve` throws
    /// (`std::bad_alloc`), nothing has changed.
    void reserve(std::size_t room) {
        if (room > memory_.room()) grow(room);
    }
    T& add(T value) {
        if (size_ == memory_.room()) grow(size_ + least_room);
        T* const added = ::new (static_cast<void*>(begin() + size_)) T(std::move(value));
        ++size_;
        return *added;
    }
    void pop_back() { begin()[--size_].~T(); }
    void clear() {
        if constexpr (std::is_trivially_destructible_v<T>)
            size_ = 0;
        else
            for (T* const first = begin(); size_ != 0;) first[--size_].~T();
    }
    /// `count` copies of `value`, in place of what was there.
    void assign(std::size_t count, const T& value) {
        clear();
        while (size_ < count) add(value);
    }

    T* begin() { return static_cast<T*>(memory_.first()); }
    T* end() { return begin() + size_; }
    const T* begin() const { return static_cast<const T*>(memory_.first()); }
    const T* end() const { return begin() + size_; }
    T& operator[](std::size_t i) { return begin()[i]; }
    const T& operator[](std::size_t i) const { return begin()[i]; }
    T& back() { return begin()[size_ - 1]; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::span<T> all() { return {begin(), size_}; }
    std::span<const T> all() const { return {begin(), size_}; }

  private:
    static constexpr std::size_t least_room = 4;
    static constexpr detail::element_layout layout{sizeof(T), alignof(T)};

    void swap(plain_vector& other) noexcept {
        memory_.swap(other.memory_);
        std::swap(size_, other.size_);
    }
    void grow(std::size_t least) {
        if constexpr (std::is_trivially_copyable_v<T>)
            memory_.grow(layout, least, size_);
        else
            memory_.grow(layout, least, size_, &move_all);
    }
    static void move_all(void* to, void* from, std::size_t count) {
        static_assert(
            std::is_nothrow_move_constructible_v<T>,
            "rill::plain_vector: objects may throw when they move, and they do when the vector grows; declare "
            "their move constructor noexcept, or make them all with the vector");
        T* const old = static_cast<T*>(from);
        T* const moved = static_cast<T*>(to);
        for (std::size_t i = 0; i < count; ++i) ::new (static_cast<void*>(moved + i)) T(std::move(old[i]));
        // In a loop of its own: else g++ 12 warns at -O3 of what a destructor would do to an object that has moved.
        for (std::size_t i = 0; i < count; ++i) old[i].~T();
    }

    detail::element_memory memory_;
    std::size_t size_ = 0;
};

}}  // namespace rill::RILL_ABI
