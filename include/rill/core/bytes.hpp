#pragma once

#include <rill/core/aligned_vector.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Read-only bytes.
using byte_view = std::span<const std::byte>;
/// Writable bytes.
using byte_span = std::span<std::byte>;

/// Of all targets together.
constexpr std::size_t size_bytes(std::span<const byte_span> targets) {
    std::size_t sum = 0;
    for (const byte_span target : targets) sum += target.size();
    return sum;
}

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
    /// What follows the first `skipped` bytes.
    constexpr byte_pieces after(std::size_t skipped) const { return skipped == 0 ? *this : cut(skipped); }

  private:
    [[gnu::noinline]] constexpr byte_pieces cut(std::size_t skipped) const {
        byte_pieces left;
        for (const byte_view piece : *this) {
            const std::size_t here = skipped < piece.size() ? skipped : piece.size();
            skipped -= here;
            if (here < piece.size()) left.push(piece.subspan(here));
        }
        return left;
    }

    byte_view pieces_[most]{};
    std::size_t count_ = 0;
};

}}  // namespace rill::RILL_ABI
