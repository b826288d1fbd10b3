#pragma once

#include <rill/core/buffer_shelf.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

struct element_layout {
    std::size_t bytes;  ///< of one element
    std::size_t alignment;
    bool is_shelved = false;  ///< whether the memory is that of the thread's `buffer_shelf`
};

/// The memory of an array, whatever its elements are, so that it is compiled once for all types. Its owner gives the
/// same layout with each call, and releases it.
class element_memory {
  public:
    /// Moves `count` elements to memory that is not initialised, and destroys those that it leaves. It does not throw.
    using mover = void (*)(void* to, void* from, std::size_t count);

    /// Room for `room` elements or more, of which the first `count` are kept. Without a mover their bytes are copied.
    /// Where it throws (`std::bad_alloc`), nothing has changed.
    void reserve(const element_layout& of, std::size_t room, std::size_t count, mover move = nullptr) {
        if (room > room_) enlarge(of, room, count, move);
    }
    /// As `reserve`, with room for further elements: the room at least doubles.
    void grow(const element_layout& of, std::size_t least, std::size_t count, mover move = nullptr) {
        if (least > room_) enlarge(of, least > 2 * count ? least : 2 * count, count, move);
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
    }

    void* first() const { return first_; }
    std::size_t room() const { return room_; }

  private:
    [[gnu::noinline]] void enlarge(const element_layout& of, std::size_t room, std::size_t count, mover move) {
        if (room > static_cast<std::size_t>(-1) / 2 / of.bytes) throw std::bad_array_new_length();
        const std::size_t size = room * of.bytes;
        void* const larger =
            of.is_shelved ? buffer_shelf::take(size) : ::operator new(size, std::align_val_t{of.alignment});
        if (count != 0 && move != nullptr) move(larger, first_, count);
        if (count != 0 && move == nullptr) std::memcpy(larger, first_, count * of.bytes);
        release(of);
        first_ = larger;
        room_ = room;
    }

    void* first_ = nullptr;
    std::size_t room_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
