// Counter-based random numbers: a pure function of (key, index), so that the result depends on no thread, no order of
// arrival and no standard library.
#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// Finaliser of splitmix64: a bijection of 64 bits that mixes well.
constexpr std::uint64_t mix64(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/// Hash of a sequence of integers; the order matters.
template <std::convertible_to<std::uint64_t>... Parts>
constexpr std::uint64_t mix64(std::uint64_t first, std::uint64_t second, Parts... rest) {
    const std::uint64_t joined = mix64(mix64(first) ^ second);
    if constexpr (sizeof...(rest) == 0)
        return joined;
    else
        return mix64(joined, static_cast<std::uint64_t>(rest)...);
}

/// The upper 64 bits of the 128-bit product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = a & 0xFFFFFFFFU, a1 = a >> 32, b0 = b & 0xFFFFFFFFU, b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
    const std::uint64_t cross = a0 * b1 + (middle & 0xFFFFFFFFU);
    return a1 * b1 + (middle >> 32) + (cross >> 32);
}

/// The key of a family of random numbers, derived from what identifies it: seed, step, operation, owner, ….
struct random_key {
    std::uint64_t value = 0;

    template <std::convertible_to<std::uint64_t>... Parts>
    constexpr random_key derive(Parts... parts) const {
        return {mix64(value, static_cast<std::uint64_t>(parts)...)};
    }
    friend constexpr bool operator==(random_key, random_key) = default;
};

/// The factor by which `counter_bits` multiplies indices. Loops over consecutive indices add it instead of multiplying.
inline constexpr std::uint32_t counter_step = 0x9E3779B1U;

/// Returns `counter_bits` of the index whose product with `counter_step` is `product`.
constexpr std::uint32_t counter_bits_of(std::uint32_t key_low, std::uint32_t key_high, std::uint32_t product) {
    std::uint32_t h = product ^ key_low;
    h ^= h >> 16;
    h *= 0x7FEB352DU;
    h ^= h >> 15;
    h += key_high;
    h *= 0x846CA68BU;
    return h ^ (h >> 16);
}

/// 32 random bits for `index` under a key of two words. Takes three multiplications and vectorises.
constexpr std::uint32_t counter_bits(std::uint32_t key_low, std::uint32_t key_high, std::uint32_t index) {
    return counter_bits_of(key_low, key_high, index * counter_step);
}

/// Random numbers of one key, by index. The upper 32 bits of an index, where not zero, select a derived key.
class counter_rng {
  public:
    constexpr explicit counter_rng(random_key key) : key_(key) {}

    /// The key word of all indices with the same upper 32 bits; loops compute it once.
    constexpr std::uint64_t word(std::uint64_t index) const {
        return (index >> 32) == 0 ? key_.value : mix64(key_.value, index >> 32);
    }
    constexpr std::uint32_t bits(std::uint64_t index) const {
        const std::uint64_t k = word(index);
        return counter_bits(static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32),
                            static_cast<std::uint32_t>(index));
    }
    /// Uniform in [0, 1), a multiple of 2^-24.
    constexpr float uniform(std::uint64_t index) const { return static_cast<float>(bits(index) >> 8) * 0x1p-24F; }

  private:
    random_key key_;
};

/// A sequence of random numbers: a counter and its key, both of which can be saved and restored.
class random_sequence {
  public:
    constexpr explicit random_sequence(random_key key, std::uint64_t position = 0) : rng_(key), position_(position) {}

    constexpr std::uint64_t position() const { return position_; }
    constexpr std::uint32_t bits() { return rng_.bits(position_++); }
    constexpr float uniform() { return rng_.uniform(position_++); }
    /// Uniform in `[0, bound)`; bound > 0. The bias is below bound / 2^64.
    constexpr std::uint64_t below(std::uint64_t bound) {
        const std::uint64_t high = bits();
        const std::uint64_t word = (high << 32) | bits();
        return multiply_high(word, bound);
    }

  private:
    counter_rng rng_;
    std::uint64_t position_;
};

}}  // namespace rill::RILL_ABI
