#pragma once

#include <rill/core/aligned_vector.hpp>
#include <rill/core/config.hpp>

#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The elements of a vector. The constructor of `std::span` that takes any range does the same, and costs the compiler
/// 0.03 s for each type of vector.
template <class T, class Allocator>
std::span<T> span_of(std::vector<T, Allocator>& all) {
    return {all.data(), all.size()};
}
template <class T, class Allocator>
std::span<const T> span_of(const std::vector<T, Allocator>& all) {
    return {all.data(), all.size()};
}
template <class T>
std::span<T> span_of(aligned_vector<T>& all) {
    return {all.data(), all.size()};
}
template <class T>
std::span<const T> span_of(const aligned_vector<T>& all) {
    return {all.data(), all.size()};
}

}}  // namespace rill::RILL_ABI
