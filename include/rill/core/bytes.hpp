#pragma once

#include <rill/core/buffer_shelf.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Read-only bytes.
using byte_view = std::span<const std::byte>;
/// Writable bytes.
using byte_span = std::span<std::byte>;

/// Allocates memory aligned to cache lines and leaves new elements of trivial types uninitialised, so that growing a
/// scratch buffer does not touch its memory twice.
template <class T>
struct aligned_allocator {
    using value_type = T;
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    aligned_allocator() = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignment)));
    }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t(alignment)); }

    template <class U, class... Args>
    void construct(U* p, Args&&... args) {
        if constexpr (sizeof...(Args) == 0 && std::is_trivially_default_constructible_v<U>)
            ::new (static_cast<void*>(p)) U;
        else
            ::new (static_cast<void*>(p)) U(static_cast<Args&&>(args)...);
    }

    friend bool operator==(const aligned_allocator&, const aligned_allocator&) { return true; }
};

/// A vector whose memory begins on a cache line, and whose new elements are uninitialised where their type is trivial.
template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

/// An `aligned_allocator` that takes its memory from the thread's `buffer_shelf`.
template <class T>
struct shelf_allocator : aligned_allocator<T> {
    static_assert(aligned_allocator<T>::alignment == static_cast<std::size_t>(buffer_shelf::alignment));

    shelf_allocator() = default;
    template <class U>
    shelf_allocator(const shelf_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(buffer_shelf::take(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) noexcept { buffer_shelf::give_back(p, n * sizeof(T)); }
};

/// The bytes of a message, owned.
using buffer = std::vector<std::byte, shelf_allocator<std::byte>>;

/// A message as up to `most` spans, in order, so that the parts of a frame (header, indices, values) are sent from
/// where they are.
class byte_pieces {
  public:
    static constexpr std::size_t most = 4;

    constexpr byte_pieces() = default;
    constexpr byte_pieces(byte_view only) { push(only); }  // NOLINT(google-explicit-constructor)

    constexpr void push(byte_view piece) { pieces_[count_++] = piece; }
    constexpr std::size_t count() const { return count_; }
    constexpr byte_view operator[](std::size_t i) const { return pieces_[i]; }
    constexpr const byte_view* begin() const { return pieces_; }
    constexpr const byte_view* end() const { return pieces_ + count_; }
    constexpr std::size_t size_bytes() const {
        std::size_t sum = 0;
        for (byte_view piece : *this) sum += piece.size();
        return sum;
    }

  private:
    byte_view pieces_[most]{};
    std::size_t count_ = 0;
};

}}  // namespace rill::RILL_ABI
