// The cut of a selection of the k largest, and its estimate from a sample.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/detail/scratch.hpp>
#include <rill/kernel/detail/task_scratch.hpp>
#include <rill/kernel/magnitude.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Working memory of the selections; its size depends on the lengths of the input and the output only.
struct select_scratch {
    buffer indices;
    buffer keys;
    buffer middle;
    buffer ties;
    buffer pages;
    detail::task_scratch<select_scratch> of_tasks;
};

namespace detail {

/// A selection as a cut: it takes every magnitude above `key`, and the first `ties` coordinates that equal it.
template <class Key>
struct cut {
    Key key = 0;
    std::size_t ties = 0;
};

template <class Key>
struct key_range {
    Key low;
    Key high;
};
/// The least and the largest of `count` keys, count > 0.
template <class Key>
key_range<Key> range_of(const Key* keys, std::size_t count) {
    Key low = keys[0], high = keys[0];
    std::size_t i = 0;
    for (; i + block <= count; i += block) {
        for (std::size_t j = 0; j < block; ++j) low = std::min(low, keys[i + j]);
        for (std::size_t j = 0; j < block; ++j) high = std::max(high, keys[i + j]);
    }
    for (; i < count; ++i) {
        low = std::min(low, keys[i]);
        high = std::max(high, keys[i]);
    }
    return {low, high};
}

/// Divides the range of `count` keys into 2048 digits, keeps the keys that share the digit of the k-th largest, and
/// subtracts the number of keys above it from `k`. Returns how many are kept: all, if all are equal.
template <class Key>
std::size_t keep_digit(Key* keys, std::size_t count, std::size_t& k) {
    constexpr int digit = 11;
    constexpr std::size_t digits = std::size_t{1} << digit;
    const auto [low, high] = range_of(keys, count);
    const int width = static_cast<int>(std::bit_width(static_cast<Key>(high - low)));
    const int shift = std::max(width - digit, 0);
    std::size_t histogram[digits]{};
    for (std::size_t i = 0; i < count; ++i) ++histogram[static_cast<std::size_t>((keys[i] - low) >> shift)];
    std::size_t d = digits - 1;
    for (; histogram[d] < k; --d) k -= histogram[d];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
        keys[kept] = keys[i];
        kept += static_cast<std::size_t>((keys[i] - low) >> shift) == d ? 1U : 0U;
    }
    return kept;
}

/// Moves the `k` largest of `count` keys to the front, the k-th largest to their end: Hoare's FIND. Returns false if
/// it takes too many rounds, which random keys do not. It is one function for the compiler, `std::nth_element` is 16.
template <class Key>
bool move_largest(Key* keys, std::size_t count, std::size_t k) {
    const auto at = static_cast<std::ptrdiff_t>(k - 1);
    std::ptrdiff_t low = 0, high = static_cast<std::ptrdiff_t>(count) - 1;
    for (int rounds_left = 64; low < high; --rounds_left) {
        if (rounds_left == 0) return false;
        const Key a = keys[low], b = keys[at], c = keys[high];
        const Key larger = std::max(a, b);  // the pivot is the largest of the three or their median
        const Key pivot =
            at - low < (high - low) / 8 ? std::max(larger, c) : std::max(std::min(a, b), std::min(larger, c));
        std::ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (keys[i] > pivot) ++i;
            while (pivot > keys[j]) --j;
            if (i <= j) std::swap(keys[i++], keys[j--]);
        }
        if (j < at) low = i;
        if (at < i) high = j;
    }
    return true;
}

/// Returns the cut below the `k` largest of `count` keys, 0 < k <= count. Overwrites the keys.
template <class Key>
cut<Key> cut_keys(Key* keys, std::size_t count, std::size_t k) {
    constexpr std::size_t few = 4096;  // up to this many, moving the largest is no slower than three passes
    while (count > few || !move_largest(keys, count, k)) {
        const std::size_t kept = keep_digit(keys, count, k);
        if (kept == count) break;  // all are equal
        count = kept;
    }
    const Key key = keys[k - 1];
    std::size_t above = 0;
    for (std::size_t i = 0; i < k; ++i) above += keys[i] > key ? 1U : 0U;
    return {key, k - above};
}

/// Returns how many of `count` keys reach `bound`. `count` is a multiple of `block`.
template <class Key>
std::size_t count_at_least(const Key* keys, std::size_t count, Key bound) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; i += block) {
        std::uint32_t reached = 0;
        for (std::size_t j = 0; j < block; ++j) reached += keys[i + j] >= bound ? 1U : 0U;
        sum += reached;
    }
    return sum;
}

/// Returns the cut below the `k` largest keys by bisection over their values. Cost: at most as many counting passes as
/// a key has bits; they vectorise and do not move the keys. At least k keys reach `low`, and none is above `largest`.
/// `count` is a multiple of `block`.
template <class Key>
cut<Key> cut_by_bisection(const Key* keys, std::size_t count, std::size_t k, Key low, Key largest) {
    Key high = largest + 1;  // at least k keys reach `low`, fewer reach `high`
    std::size_t above = 0;
    while (high - low > 1) {
        const Key middle = low + (high - low) / 2;
        const std::size_t reached = count_at_least(keys, count, middle);
        if (reached == k) return {middle - 1, 0};
        if (reached > k) {
            low = middle;
        } else {
            high = middle;
            above = reached;
        }
    }
    return {low, k - above};
}

/// Returns a bound that at least `k` of the keys reach: one that exactly k reach if the bisection finds it, else the
/// largest. The parameters are those of `cut_by_bisection`.
template <class Key>
Key reached_by(const Key* keys, std::size_t count, std::size_t k, Key low, Key largest) {
    const auto at = cut_by_bisection(keys, count, k, low, largest);
    return at.ties == 0 ? at.key + 1 : at.key;
}

/// Bounds between which the k-th largest magnitude lies almost surely.
template <class Key>
struct bounds {
    Key low = 0;
    Key high = 0;
    std::size_t capacity = 0;  ///< more magnitudes above `low` than this are most unlikely
    std::size_t ties = 0;      ///< how many keys equal to `low` suffice; zero if few equal it
};

/// Returns bounds from a random sample; their capacity is zero when k is so close to n that they would exclude nothing.
template <Element T>
bounds<magnitude_key<T>> sample_bounds(std::span<const T> x, std::size_t k, select_scratch& scratch) {
    using key = magnitude_key<T>;
    const std::size_t n = x.size();
    const std::size_t count = std::min<std::size_t>(64 + n / 128, 16384);
    const double rank = static_cast<double>(k) * static_cast<double>(count) / static_cast<double>(n);
    const double spread = 4 * rill::detail::square_root(rank) + 4;
    const auto low = static_cast<std::size_t>(rank + spread);
    if (low >= count) return {};

    const std::size_t padded = (count + block - 1) / block * block;
    key* sample = room<key>(scratch.middle, padded);
    rill::detail::fill_elements(sample + count, padded - count, key{0});
    std::uint32_t drawn = 0;
    const auto draw = [&] { return std::uint64_t{counter_bits(0x6C656374U, 0x7365U, drawn++)}; };
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t high = draw(), at = n >> 32 == 0 ? high * n >> 32 : multiply_high(high << 32 | draw(), n);
        sample[i] = magnitude(x[static_cast<std::size_t>(at)]);
    }

    const auto [least, largest] = range_of(sample, count);
    bounds<key> result{.low = reached_by(sample, padded, low + 1, least, largest), .high = static_cast<key>(-1)};
    if (rank > spread)
        result.high = reached_by(sample, padded, static_cast<std::size_t>(rank - spread) + 1, result.low, largest);
    const double most = (static_cast<double>(low) + 4 * rill::detail::square_root(static_cast<double>(low)) + 8) /
                        static_cast<double>(count);
    std::size_t equal = 0, larger = 0;
    for (std::size_t i = 0; i < count; ++i) {
        equal += sample[i] == result.low ? 1U : 0U;
        larger += sample[i] > result.low ? 1U : 0U;
    }
    if (result.low == 0 || equal > 1) {
        const auto above = static_cast<double>(larger);
        const double fewest =
            (above - 4 * rill::detail::square_root(above)) / static_cast<double>(count) * static_cast<double>(n);
        result.ties = k - std::min(k, fewest > 0 ? static_cast<std::size_t>(fewest) : 0);
    }
    result.capacity = most < 1 ? static_cast<std::size_t>(most * static_cast<double>(n)) : n;
    return result;
}

}  // namespace detail

}}}  // namespace rill::RILL_ABI::kernel
