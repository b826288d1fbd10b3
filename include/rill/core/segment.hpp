#pragma once

#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// A half-open range `[begin, end)` of coordinates.
struct segment {
    std::size_t begin = 0;
    std::size_t end = 0;

    constexpr std::size_t size() const { return end - begin; }
    constexpr bool empty() const { return begin == end; }
    constexpr bool contains(std::size_t i) const { return begin <= i && i < end; }
    constexpr bool contains(segment other) const { return begin <= other.begin && other.end <= end; }
    constexpr bool overlaps(segment other) const { return begin < other.end && other.begin < end; }
    friend constexpr bool operator==(segment, segment) = default;
};

/// Part `i` of `parts` nearly equal consecutive parts of `[0, n)`; the first `n % parts` of them are one longer. `n`
/// may be less than `parts`.
constexpr segment split(std::size_t n, std::size_t parts, std::size_t i) {
    const std::size_t each = n / parts;
    const std::size_t longer = n % parts;
    const std::size_t begin = i * each + (i < longer ? i : longer);
    return {begin, begin + each + (i < longer ? 1U : 0U)};
}

/// Parts `[first, last)` of `split(n, parts, ·)` as one segment.
constexpr segment split(std::size_t n, std::size_t parts, std::size_t first, std::size_t last) {
    if (first == last) return {split(n, parts, first).begin, split(n, parts, first).begin};
    return {split(n, parts, first).begin, split(n, parts, last - 1).end};
}

}}  // namespace rill::RILL_ABI
