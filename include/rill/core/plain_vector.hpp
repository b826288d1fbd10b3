#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {

/// The memory of a `plain_vector`, whatever its elements are.
class element_memory {
  public:
    /// Moves `count` elements to memory that is not initialised, and destroys those that it leaves.
    using mover = void (*)(void* to, void* from, std::size_t count);

    element_memory(std::size_t bytes_of_one, std::size_t alignment)
        : bytes_of_one_(bytes_of_one), alignment_(alignment) {}
    element_memory(const element_memory&) = delete;
    element_memory& operator=(const element_memory&) = delete;
    ~element_memory() { release(first); }

    /// Room for `least` elements or more. Without a mover the bytes are copied.
    [[gnu::noinline]] void reserve(std::size_t least, std::size_t count, mover move) {
        if (least <= room_) return;
        const std::size_t twice = 2 * room_;
        const std::size_t room = least > twice ? least : twice;
        void* const larger = ::operator new(room* bytes_of_one_, std::align_val_t{alignment_});
        if (count != 0 && move != nullptr) move(larger, first, count);
        if (count != 0 && move == nullptr) std::memcpy(larger, first, count * bytes_of_one_);
        release(std::exchange(first, larger));
        room_ = room;
    }
    void swap(element_memory& other) noexcept {
        std::swap(first, other.first);
        std::swap(room_, other.room_);
    }

    std::size_t room() const { return room_; }

    void* first = nullptr;

  private:
    void release(void* memory) const { ::operator delete(memory, std::align_val_t{alignment_}); }

    std::size_t bytes_of_one_;
    std::size_t alignment_;
    std::size_t room_ = 0;
};

}  // namespace detail

/// A vector with few members. It costs the compiler a small part of what `std::vector` costs for each type of element:
/// it has one function where that has ten, pointers for iterators, and its memory is compiled once.
template <class T>
class plain_vector {
  public:
    plain_vector() = default;
    /// `count` objects, each of them made from `from`.
    template <class... From>
    explicit plain_vector(std::size_t count, const From&... from) : plain_vector() {
        memory_.reserve(count, 0, nullptr);
        for (; size_ < count; ++size_) ::new (static_cast<void*>(end())) T(from...);
    }
    plain_vector(plain_vector&& other) noexcept { swap(other); }
    plain_vector& operator=(plain_vector&& other) noexcept {
        swap(other);
        return *this;
    }
    ~plain_vector() { clear(); }

    T& add(T value) {
        if (size_ == memory_.room()) reserve(size_ + least_room);
        T* const added = ::new (static_cast<void*>(end())) T(std::move(value));
        ++size_;
        return *added;
    }
    void pop_back() { begin()[--size_].~T(); }
    void clear() {
        if constexpr (std::is_trivially_destructible_v<T>)
            size_ = 0;
        else
            while (size_ != 0) pop_back();
    }
    /// `count` copies of `value`, in place of what was there.
    void assign(std::size_t count, const T& value) {
        clear();
        while (size_ < count) add(value);
    }

    T* begin() { return static_cast<T*>(memory_.first); }
    T* end() { return begin() + size_; }
    const T* begin() const { return static_cast<const T*>(memory_.first); }
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

    void swap(plain_vector& other) noexcept {
        memory_.swap(other.memory_);
        std::swap(size_, other.size_);
    }
    void reserve(std::size_t least) {
        if constexpr (std::is_trivially_copyable_v<T>)
            memory_.reserve(least, size_, nullptr);
        else
            memory_.reserve(least, size_, [](void* to, void* from, std::size_t count) {
                T* const old = static_cast<T*>(from);
                for (std::size_t i = 0; i < count; ++i)
                    ::new (static_cast<void*>(static_cast<T*>(to) + i)) T(std::move(old[i]));
                for (std::size_t i = 0; i < count; ++i) old[i].~T();
            });
    }

    detail::element_memory memory_{sizeof(T), alignof(T)};
    std::size_t size_ = 0;
};

}}  // namespace rill::RILL_ABI
