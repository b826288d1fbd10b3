#pragma once

#include <rill/core/buffer_shelf.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Moves `count` elements to memory that is not initialised, and destroys those that it leaves. It does not throw.
using element_mover = void (*)(void* to, void* from, std::size_t count);

struct element_layout {
    std::size_t bytes;  ///< of one element
    std::size_t alignment;
    bool is_shelved = false;  ///< whether the memory is that of the thread's `buffer_shelf`
};

/// The memory of an array and the number of its elements, whatever they are, so that this is compiled once for all
/// types. Its owner gives the same layout with each call, and releases it.
class element_memory {
  public:
    element_memory(const element_memory&) = delete;
    element_memory& operator=(const element_memory&) = delete;

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

  protected:
    element_memory() = default;
    ~element_memory() = default;

    /// Room for `room` elements or more; those that are there move as bytes. Where it throws (`std::bad_alloc`),
    /// nothing has changed.
    void reserve(const element_layout& of, std::size_t room) {
        if (room > room_) enlarge(of, room, size_);
    }
    /// As `reserve`, but the elements need not be kept, since all are replaced next.
    void renew(const element_layout& of, std::size_t room) {
        if (room > room_) enlarge(of, room, 0);
    }
    /// Copies the elements of `other` as bytes.
    [[gnu::noinline]] void copy(const element_layout& of, const element_memory& other) {
        renew(of, other.size_);
        if (other.size_ != 0) std::memcpy(first_, other.first_, other.size_ * of.bytes);
        size_ = other.size_;
    }
    /// As `reserve`, with room for further elements: the room at least doubles.
    void grow(const element_layout& of, std::size_t least, element_mover move = nullptr) {
        if (least > room_) double_room(of, least, move);
    }
    /// The memory of one more element, which the owner must make there at once, without a throw.
    void* next_place(const element_layout& of, element_mover move) {
        if (size_ == room_) grow(of, size_ + 4, move);
        return static_cast<std::byte*>(first_) + size_++ * of.bytes;
    }
    [[gnu::noinline]] void release(const element_layout& of) noexcept {
        if (first_ == nullptr) return;
        if (of.is_shelved)
            buffer_shelf::give_back(first_, room_ * of.bytes);
        else
            ::operator delete(first_, std::align_val_t{of.alignment});
    }
    void swap(element_memory& other) noexcept {
        std::swap(first_, other.first_);
        std::swap(room_, other.room_);
        std::swap(size_, other.size_);
    }

    void* first_ = nullptr;
    std::size_t room_ = 0;
    std::size_t size_ = 0;

  private:
    [[gnu::noinline]] void double_room(const element_layout& of, std::size_t least, element_mover move) {
        enlarge(of, least > 2 * size_ ? least : 2 * size_, size_, move);
    }
    [[gnu::noinline]] void enlarge(const element_layout& of, std::size_t room, std::size_t kept,
                                   element_mover move = nullptr) {
        if (room > static_cast<std::size_t>(-1) / 2 / of.bytes) throw std::bad_array_new_length();
        const std::size_t size = room * of.bytes;
        void* const larger =
            of.is_shelved ? buffer_shelf::take(size) : ::operator new(size, std::align_val_t{of.alignment});
        if (kept != 0 && move != nullptr) move(larger, first_, kept);
        if (kept != 0 && move == nullptr) std::memcpy(larger, first_, kept * of.bytes);
        release(of);
        first_ = larger;
        room_ = room;
    }
};

}}}  // namespace rill::RILL_ABI::detail
