#pragma once

#include <rill/core/buffer_shelf.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/element_memory.hpp>

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
class aligned_vector {
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
    aligned_vector(const aligned_vector& other) : aligned_vector() { copy(other.data(), other.size_); }
    aligned_vector(aligned_vector&& other) noexcept { swap(other); }
    aligned_vector& operator=(const aligned_vector& other) {
        if (this != &other) copy(other.data(), other.size_);
        return *this;
    }
    aligned_vector& operator=(aligned_vector&& other) noexcept {
        aligned_vector(std::move(other)).swap(*this);
        return *this;
    }
    ~aligned_vector() { memory_.release(layout); }

    void swap(aligned_vector& other) noexcept {
        memory_.swap(other.memory_);
        std::swap(size_, other.size_);
    }
    friend void swap(aligned_vector& a, aligned_vector& b) noexcept { a.swap(b); }

    void reserve(std::size_t room) { memory_.reserve(layout, room, size_); }
    void resize(std::size_t count) {
        memory_.grow(layout, count, size_);
        if constexpr (!std::is_trivially_default_constructible_v<T>)
            for (std::size_t i = size_; i < count; ++i) ::new (static_cast<void*>(data() + i)) T();
        size_ = count;
    }
    void resize(std::size_t count, const T& value) {
        const T kept = value;
        memory_.grow(layout, count, size_);
        if (count > size_) std::fill(end(), data() + count, kept);
        size_ = count;
    }
    void assign(std::size_t count, const T& value) {
        const T kept = value;
        memory_.reserve(layout, count, 0);
        std::fill(data(), data() + count, kept);
        size_ = count;
    }
    template <std::forward_iterator From>
    void assign(From first, From last) {
        const auto count = static_cast<std::size_t>(std::distance(first, last));
        memory_.reserve(layout, count, 0);
        std::copy(first, last, data());
        size_ = count;
    }
    /// The range must not be one of this vector's own.
    template <std::forward_iterator From>
    void append(From first, From last) {
        const std::size_t before = size_;
        resize(before + static_cast<std::size_t>(std::distance(first, last)));
        std::copy(first, last, data() + before);
    }
    void push_back(T value) {
        memory_.grow(layout, size_ + 1, size_);
        ::new (static_cast<void*>(end())) T(value);
        ++size_;
    }
    void clear() { size_ = 0; }

    T* data() { return static_cast<T*>(memory_.first()); }
    const T* data() const { return static_cast<const T*>(memory_.first()); }
    T* begin() { return data(); }
    T* end() { return data() + size_; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size_; }
    T& operator[](std::size_t i) { return data()[i]; }
    const T& operator[](std::size_t i) const { return data()[i]; }
    T& front() { return *data(); }
    const T& front() const { return *data(); }
    T& back() { return end()[-1]; }
    const T& back() const { return end()[-1]; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return memory_.room(); }
    bool empty() const { return size_ == 0; }

    friend bool operator==(const aligned_vector& a, const aligned_vector& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

  private:
    static constexpr bool is_shelved = std::is_same_v<T, std::byte>;
    static_assert(!is_shelved || static_cast<std::align_val_t>(alignment) == buffer_shelf::alignment);
    static constexpr detail::element_layout layout{sizeof(T), alignment, is_shelved};

    void copy(const T* from, std::size_t count) {
        memory_.reserve(layout, count, 0);
        if (count != 0) std::memcpy(memory_.first(), from, count * sizeof(T));
        size_ = count;
    }

    detail::element_memory memory_;
    std::size_t size_ = 0;
};

/// The bytes of a message, owned.
using buffer = aligned_vector<std::byte>;

}}  // namespace rill::RILL_ABI
