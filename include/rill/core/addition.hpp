#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI {

/// The fold `a + b`. Kernels recognise this type: they may add many values at once, and may add values whose sum they
/// then discard, which they must not do with an unknown fold. Results have the bits of `a + b`.
struct addition {
    template <class T>
    constexpr T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }

    friend constexpr bool operator==(addition, addition) = default;
};

}}  // namespace rill::RILL_ABI
