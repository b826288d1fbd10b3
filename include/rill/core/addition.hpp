#pragma once

#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI {

/// Folds by adding. Kernels know this type: they may add many values at once, and add what they then drop, which is not
/// permitted with a fold of which nothing is known. The bits are those of `a + b`.
struct addition {
    template <class T>
    constexpr T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }

    friend constexpr bool operator==(addition, addition) = default;
};

}}  // namespace rill::RILL_ABI
