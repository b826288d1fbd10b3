#pragma once

#include <rill/core/random.hpp>
#include <rill/core/sparse_view.hpp>

#include <cstring>
#include <map>
#include <vector>

namespace rill::kernel_tests {

template <class T, class Index>
struct sparse {
    std::vector<Index> indices;
    std::vector<T> values;

    sparse_view<T, Index> view() const { return {indices, values}; }
    friend bool operator==(const sparse& a, const sparse& b) {
        return a.indices == b.indices && a.values.size() == b.values.size() &&
               (a.values.empty() || std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(T)) == 0);
    }
};

/// Each coordinate of `[begin, end)` with the given probability; every fourth value is -0.0 (or 0).
template <class T, class Index>
sparse<T, Index> random_sparse(std::uint64_t seed, std::uint64_t begin, std::uint64_t end, float density) {
    sparse<T, Index> result;
    const counter_rng random(random_key{seed});
    for (std::uint64_t i = begin; i < end; ++i) {
        if (random.uniform(i) >= density) continue;
        const std::uint32_t bits = random.bits(i + end);
        result.indices.push_back(static_cast<Index>(i));
        result.values.push_back(bits % 4 == 0 ? static_cast<T>(-T{0})
                                              : static_cast<T>(bits % 100000) / static_cast<T>(7));
    }
    return result;
}

/// For each coordinate, the left fold of the values that are present.
template <class T, class Index, class Fold>
sparse<T, Index> naive_merge(const std::vector<sparse<T, Index>>& inputs, Fold fold) {
    std::map<Index, T> sums;
    for (const auto& input : inputs)
        for (std::size_t j = 0; j < input.indices.size(); ++j) {
            const auto [at, fresh] = sums.try_emplace(input.indices[j], input.values[j]);
            if (!fresh) at->second = fold(at->second, input.values[j]);
        }
    sparse<T, Index> result;
    for (const auto& [i, v] : sums) {
        result.indices.push_back(i);
        result.values.push_back(v);
    }
    return result;
}

constexpr auto left_heavy = [](auto a, auto b) { return static_cast<decltype(a)>(a - b / 3); };

}  // namespace rill::kernel_tests
