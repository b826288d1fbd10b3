#pragma once

#include <rill/core/config.hpp>

#include <bit>
#include <cstddef>
#include <new>

namespace rill { inline namespace RILL_ABI {

/// A thread's cache of message buffers: memory of messages that it has done with is reused for messages that it will
/// send. The first touch of fresh memory costs more than a copy, and a rank that takes part in an exchange frees as
/// much memory as it sends.
///
/// Sizes are rounded up to one of eight steps between consecutive powers of two, from `least` bytes on. A shelf keeps
/// at most `places` buffers below `large` bytes, as many from there on, and `most` bytes; the rest goes back to the
/// system. So small buffers take no place from large ones. A buffer that finds all places taken gets that of another
/// one, so that sizes that are no longer used do not stay for ever. A shelf is never shared between threads. Under the
/// address sanitizer nothing is kept, so that the sanitizer finds uses after a free.
class buffer_shelf {
  public:
    static constexpr std::size_t least = std::size_t{1} << 11;
    static constexpr std::size_t large = std::size_t{1} << 16;
    static constexpr std::size_t most = std::size_t{1} << 28;
    static constexpr std::size_t places = 64;
    static constexpr std::align_val_t alignment{64};
#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool keeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    static constexpr bool keeps = false;
#else
    static constexpr bool keeps = true;
#endif
#else
    static constexpr bool keeps = true;
#endif

    /// The number of bytes that are allocated for a buffer of `size` bytes.
    static constexpr std::size_t room_for(std::size_t size) {
        if (size < least) return size;
        const std::size_t step = std::bit_floor(size - 1) / 8;
        return (size + step - 1) / step * step;
    }

    // Not inlined: every array of the library is allocated and freed here.
    [[gnu::noinline]] static void* take(std::size_t size) {
        const std::size_t room = room_for(size);
        if (buffer_shelf* const own = of_this_thread(room))
            if (void* const kept = own->find(room)) return kept;
        return ::operator new(room, alignment);
    }
    /// `size` must be the size with which `memory` was taken.
    [[gnu::noinline]] static void give_back(void* memory, std::size_t size) noexcept {
        const std::size_t room = room_for(size);
        buffer_shelf* const own = of_this_thread(room);
        if (own == nullptr || !own->keep(memory, room)) ::operator delete(memory, alignment);
    }

    buffer_shelf() = default;
    buffer_shelf(const buffer_shelf&) = delete;
    buffer_shelf& operator=(const buffer_shelf&) = delete;
    ~buffer_shelf() {
        is_gone = true;
        for (const row& each : rows_)
            for (std::size_t i = 0; i < each.count; ++i) ::operator delete(each.kept[i].memory, alignment);
    }

  private:
    struct piece {
        void* memory;
        std::size_t room;
    };
    struct row {
        piece kept[places]{};
        std::size_t count = 0;
        std::size_t next = 0;  ///< the place that is given away where all are taken; each in its turn
    };

    /// Null for small buffers, and while a thread exits after its shelf has been destroyed.
    static buffer_shelf* of_this_thread(std::size_t room) {
        if (!keeps || room < least || is_gone) return nullptr;
        thread_local buffer_shelf own;
        return &own;
    }

    row& row_of(std::size_t room) { return rows_[room < large ? 0 : 1]; }
    void* find(std::size_t room) {
        row& at = row_of(room);
        for (std::size_t i = at.count; i-- > 0;)
            if (at.kept[i].room == room) {
                bytes_ -= room;
                return take_out(at, i).memory;
            }
        return nullptr;
    }
    static piece take_out(row& of, std::size_t place) {
        const piece taken = of.kept[place];
        of.kept[place] = of.kept[--of.count];
        return taken;
    }
    bool keep(void* memory, std::size_t room) {
        row& at = row_of(room);
        if (at.count == places) drop(at, at.next++ % places);
        if (room > most - bytes_) return false;
        at.kept[at.count++] = {memory, room};
        bytes_ += room;
        return true;
    }

    void drop(row& from, std::size_t place) {
        const piece dropped = take_out(from, place);
        bytes_ -= dropped.room;
        ::operator delete(dropped.memory, alignment);
    }

    static inline thread_local bool is_gone = false;

    row rows_[2]{};
    std::size_t bytes_ = 0;
};

}}  // namespace rill::RILL_ABI
