#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/plain_vector.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// Allocates bytes whose addresses stay valid until `reset`. Blocks are kept, so that a repeated pattern of use
/// allocates nothing.
class arena {
  public:
    /// `size` uninitialised bytes, aligned to a cache line.
    [[gnu::noinline]] byte_span take(std::size_t size) {
        while (block_ < blocks_.size() && blocks_[block_].size() - used_ < size) {
            ++block_;
            used_ = 0;
        }
        if (block_ == blocks_.size()) add_block(size);
        const byte_span taken(blocks_[block_].data() + used_, size);
        const std::size_t end = used_ + (size + line - 1) / line * line;
        const std::size_t most = blocks_[block_].size();
        used_ = end < most ? end : most;
        return taken;
    }
    void reset() { block_ = used_ = 0; }

  private:
    static constexpr std::size_t least_block = std::size_t{1} << 16;
    static constexpr std::size_t line = 64;
    static_assert(buffer::alignment == line);

    /// Each block is at least twice as long as the one before, so that uses of slightly different sizes soon allocate
    /// nothing.
    [[gnu::cold, gnu::noinline]] void add_block(std::size_t size) {
        const std::size_t usual = blocks_.empty() ? least_block : 2 * blocks_.back().size();
        blocks_.add(buffer(size > usual ? size : usual));
    }

    plain_vector<buffer> blocks_;
    std::size_t block_ = 0;
    std::size_t used_ = 0;
};

}}  // namespace rill::RILL_ABI
