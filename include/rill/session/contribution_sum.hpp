#pragma once

#include <rill/core/receipt.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// What a rank says about its contribution. The collective does not multiply by the weight: for Σ w·g / Σ w pass w·g to
/// a `mean`. A rank of weight 0 contributes nothing, and its input is not read.
struct contribution {
    double weight = 1;      ///< from 0 to 1e28, so that a `float` holds the sum of all
    std::uint32_t age = 0;  ///< in steps

    friend constexpr bool operator==(const contribution&, const contribution&) = default;
};

/// The contributions in a value: their number, the sum of their weights, the age of the oldest. Folded with the
/// payload.
struct contribution_sum {
    double weight = 1;
    std::uint32_t contributors = 1;
    std::uint32_t age = 0;

    static contribution_sum of(const contribution& own) {
        return own.weight > 0 ? contribution_sum{own.weight, 1, own.age} : contribution_sum{0, 0, 0};
    }
    static contribution_sum of(const wire::header& head) { return {head.weight, head.contributors, head.age}; }

    void describe(wire::header& head) const {
        head.weight = weight;
        head.contributors = contributors;
        head.age = age;
    }
    void describe(receipt& result) const {
        result.weight = weight;
        result.contributors = static_cast<int>(contributors);
        result.age = age;
    }
    friend constexpr contribution_sum operator+(contribution_sum a, contribution_sum b) {
        return {a.weight + b.weight, a.contributors + b.contributors, a.age > b.age ? a.age : b.age};
    }
    friend constexpr bool operator==(contribution_sum, contribution_sum) = default;
};

}}  // namespace rill::RILL_ABI
