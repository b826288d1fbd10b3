#pragma once

#include <rill/core/types.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}}  // namespace rill::RILL_ABI
