#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rill { inline namespace RILL_ABI {

/// A number for bytes. Each word of 8 bytes is mixed in by a bijection, so a change within one word is always detected.
/// Any other change goes undetected with probability 2^-64. Cost: one pass.
inline std::uint64_t checksum(byte_view bytes) {
    std::uint64_t sum = bytes.size();
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
        sum = mix64(sum ^ word);
    }
    return sum;
}

}}  // namespace rill::RILL_ABI
