#pragma once

#include <rill/core/buffer_shelf.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/element_memory.hpp>
#include <rill/core/detail/elements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A vector of numbers or of other objects that are copied as bytes. Its memory begins on a cache line. New elements
/// are uninitialised where their type is trivial, so that growing a scratch array does not touch its memory twice.
/// Iterators are pointers. It has the members of `std::vector` that such arrays need, with the same cost and the same
/// rules for what stays valid; they throw nothing but `std::bad_alloc`, and then the vector is as it was. Bytes are
/// those of messages: their memory is that of the thread's `buffer_shelf`.
template <class T>
class aligned_vector : detail::element_memory {
    static_assert(std::is_trivially_copyable_v<T>, "aligned_vector: its elements are copied as bytes");

  public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    aligned_vector() = default;
    explicit aligned_vector(std::size_t count) : aligned_vector() { resize(count); }
    aligned_vector(std::size_t count, const T& value) : aligned_vector() { assign(count, value); }
    template <std::forward_iterator From>
    aligned_vector(From first, From last) : aligned_vector() {
        assign(first, last);
    }
    aligned_vector(std::initializer_list<T> values) : aligned_vector(values.begin(), values.end()) {}
    aligned_vector(const aligned_vector& other) : aligned_vector() { copy(layout, other); }
    aligned_vector(aligned_vector&& other) noexcept : element_memory() { element_memory::swap(other); }
    aligned_vector& operator=(const aligned_vector& other) {
        if (this != &other) copy(layout, other);
        return *this;
    }
    aligned_vector& operator=(aligned_vector&& other) noexcept {
        aligned_vector(std::move(other)).swap(*this);
        return *this;
    }
    ~aligned_vector() { release(layout); }

    void swap(aligned_vector& other) noexcept { element_memory::swap(other); }
    friend void swap(aligned_vector& a, aligned_vector& b) noexcept { a.swap(b); }

    void reserve(std::size_t room) { element_memory::reserve(layout, room); }
    void resize(std::size_t count) {
        grow(layout, count);
        if constexpr (!std::is_trivially_default_constructible_v<T>)
            for (std::size_t i = size_; i < count; ++i) ::new (static_cast<void*>(data() + i)) T();
        size_ = count;
    }
    void resize(std::size_t count, const T& value) {
        const T kept = value;
        grow(layout, count);
        if (count > size_) detail::fill_elements(end(), count - size_, kept);
        size_ = count;
    }
    void assign(std::size_t count, const T& value) {
        const T kept = value;
        renew(layout, count);
        detail::fill_elements(data(), count, kept);
        size_ = count;
    }
    template <std::forward_iterator From>
    void assign(From first, From last) {
        const auto count = static_cast<std::size_t>(std::distance(first, last));
        renew(layout, count);
        std::copy(first, last, data());
        size_ = count;
    }
    /// The elements must not be this vector's own.
    void append(const T* from, std::size_t count) {
        const std::size_t before = size_;
        resize(before + count);
        detail::copy_elements(from, count, data() + before);
    }
    /// The range must not be one of this vector's own.
    template <std::forward_iterator From>
    void append(From first, From last) {
        const std::size_t before = size_;
        resize(before + static_cast<std::size_t>(std::distance(first, last)));
        std::copy(first, last, data() + before);
    }
    void push_back(T value) {
        grow(layout, size_ + 1);
        ::new (static_cast<void*>(end())) T(value);
        ++size_;
    }
    void clear() { size_ = 0; }

    // None of these calls another one: each would be a function more for each type.
    T* data() { return static_cast<T*>(first_); }
    const T* data() const { return static_cast<const T*>(first_); }
    T* begin() { return static_cast<T*>(first_); }
    T* end() { return static_cast<T*>(first_) + size_; }
    const T* begin() const { return static_cast<const T*>(first_); }
    const T* end() const { return static_cast<const T*>(first_) + size_; }
    T& operator[](std::size_t i) { return static_cast<T*>(first_)[i]; }
    const T& operator[](std::size_t i) const { return static_cast<const T*>(first_)[i]; }
    T& front() { return *static_cast<T*>(first_); }
    const T& front() const { return *static_cast<const T*>(first_); }
    T& back() { return static_cast<T*>(first_)[size_ - 1]; }
    const T& back() const { return static_cast<const T*>(first_)[size_ - 1]; }
    using element_memory::empty;
    using element_memory::size;
    std::size_t capacity() const { return room_; }

    friend bool operator==(const aligned_vector& a, const aligned_vector& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

  private:
    static constexpr bool is_shelved = std::is_same_v<T, std::byte>;
    static_assert(!is_shelved || static_cast<std::align_val_t>(alignment) == buffer_shelf::alignment);
    static constexpr detail::element_layout layout{sizeof(T), alignment, is_shelved};
};

/// The bytes of a message, owned.
using buffer = aligned_vector<std::byte>;

}}  // namespace rill::RILL_ABI
