#pragma once

#include <rill/core/config.hpp>
#include <rill/core/detail/element_memory.hpp>

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
template <class T>
void move_elements(void* to, void* from, std::size_t count) {
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "rill::plain_vector: objects may throw when they move, and they do when the vector grows; declare "
                  "their move constructor noexcept, or make them all with the vector");
    T* const old = static_cast<T*>(from);
    T* const moved = static_cast<T*>(to);
    for (std::size_t i = 0; i < count; ++i) ::new (static_cast<void*>(moved + i)) T(std::move(old[i]));
    // In a loop of its own: else g++ 12 warns at -O3 of what a destructor would do to an object that has moved.
    for (std::size_t i = 0; i < count; ++i) old[i].~T();
}
template <class T>
inline constexpr element_mover mover_of = &move_elements<T>;
template <class T>
    requires std::is_trivially_copyable_v<T>
inline constexpr element_mover mover_of<T> = nullptr;
}  // namespace detail

/// A vector with few members. It costs the compiler a small part of what `std::vector` costs for each type of element:
/// it has one function where that has ten, pointers for iterators, and its memory is compiled once. Objects that are
/// copied as bytes and that users may copy stand in an `aligned_vector`.
template <class T>
class plain_vector : detail::element_memory {
  public:
    plain_vector() = default;
    /// `count` objects, each of them made from `from`.
    template <class... From>
    explicit plain_vector(std::size_t count, const From&... from) : plain_vector() {
        grow(layout, count);
        for (T* at = static_cast<T*>(first_); size_ < count; ++size_) ::new (static_cast<void*>(at++)) T(from...);
    }
    plain_vector(plain_vector&& other) noexcept : element_memory() { swap(other); }
    plain_vector& operator=(plain_vector&& other) noexcept {
        swap(other);
        return *this;
    }
    ~plain_vector() {
        if constexpr (!std::is_trivially_destructible_v<T>) destroy_all();
        release(layout);
    }

    /// Room for `room` objects: `add` allocates and throws nothing while there are fewer. Where `reserve` throws
    /// (`std::bad_alloc`), nothing has changed.
    void reserve(std::size_t room) { grow(layout, room, detail::mover_of<T>); }
    T& add(T value) { return *::new (next_place(layout, detail::mover_of<T>)) T(std::move(value)); }
    void pop_back() { static_cast<T*>(first_)[--size_].~T(); }
    void clear() {
        if constexpr (std::is_trivially_destructible_v<T>)
            size_ = 0;
        else
            destroy_all();
    }
    /// `count` copies of `value`, in place of what was there.
    void assign(std::size_t count, const T& value) {
        clear();
        while (size_ < count) add(value);
    }

    // None of these calls another one: each would be a function more for each type.
    T* begin() { return static_cast<T*>(first_); }
    T* end() { return static_cast<T*>(first_) + size_; }
    const T* begin() const { return static_cast<const T*>(first_); }
    const T* end() const { return static_cast<const T*>(first_) + size_; }
    T& operator[](std::size_t i) { return static_cast<T*>(first_)[i]; }
    const T& operator[](std::size_t i) const { return static_cast<const T*>(first_)[i]; }
    T& back() { return static_cast<T*>(first_)[size_ - 1]; }
    using element_memory::empty;
    using element_memory::size;
    std::span<T> all() { return {static_cast<T*>(first_), size_}; }
    std::span<const T> all() const { return {static_cast<const T*>(first_), size_}; }

  private:
    [[gnu::noinline]] void destroy_all() {
        for (T* const first = static_cast<T*>(first_); size_ != 0;) first[--size_].~T();
    }

    static constexpr detail::element_layout layout{sizeof(T), alignof(T)};
};

}}  // namespace rill::RILL_ABI
