// What sparse additions are compared with, on structures of arrays with 32-bit indices and floats.
#pragma once

#include <rill/core/sparse_view.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace baseline {

using view = rill::sparse_view<float, std::uint32_t>;

/// Room for a sum.
struct target {
    std::uint32_t* indices;
    float* values;

    view first(std::size_t count) const { return {{indices, count}, {values, count}}; }
    target behind(std::size_t count) const { return {indices + count, values + count}; }
};

inline void copy_behind(view x, std::size_t first, target out) {
    const std::size_t count = x.count() - first;
    if (count == 0) return;
    std::memcpy(out.indices, x.indices.data() + first, count * sizeof(std::uint32_t));
    std::memcpy(out.values, x.values.data() + first, count * sizeof(float));
}

/// Selects one of two values by a mask, so that no compiler makes a branch of it.
inline float pick(std::uint32_t mask, float one, float other) {
    const auto bits = std::bit_cast<std::uint32_t>(other);
    return std::bit_cast<float>(bits ^ ((std::bit_cast<std::uint32_t>(one) ^ bits) & mask));
}

/// A two-way merge with no branch except that of its loop.
inline std::size_t branchless(view a, view b, target out) {
    std::size_t i = 0, j = 0, count = 0;
    while (i < a.count() && j < b.count()) {
        const std::uint32_t left = a.indices[i], right = b.indices[j];
        const auto take_left = static_cast<std::uint32_t>(left <= right);
        const auto take_right = static_cast<std::uint32_t>(right <= left);
        const float x = a.values[i], y = b.values[j];
        out.indices[count] = std::min(left, right);
        out.values[count] = pick(0 - take_left, pick(0 - take_right, x + y, x), y);
        i += take_left;
        j += take_right;
        ++count;
    }
    copy_behind(a, i, out.behind(count));
    count += a.count() - i;
    copy_behind(b, j, out.behind(count));
    return count + b.count() - j;
}

/// Concatenates the inputs without adding.
inline std::size_t concatenate(std::span<const view> inputs, target out) {
    std::size_t count = 0;
    for (const view& each : inputs) {
        copy_behind(each, 0, out.behind(count));
        count += each.count();
    }
    return count;
}

/// Merges two by two until one is left; `spare` is as large as `out`. The order of the additions is the tree's.
inline std::size_t tree(std::span<const view> inputs, target out, target spare) {
    std::vector<view> level(inputs.begin(), inputs.end());
    std::size_t depth = 0;
    for (std::size_t width = level.size(); width > 1; width = (width + 1) / 2) ++depth;
    for (; depth > 0; --depth) {
        const target to = depth % 2 == 1 ? out : spare;
        std::vector<view> next;
        std::size_t used = 0;
        for (std::size_t k = 0; k < level.size(); k += 2) {
            const view left = level[k], right = k + 1 < level.size() ? level[k + 1] : view{};
            next.push_back(to.behind(used).first(branchless(left, right, to.behind(used))));
            used += left.count() + right.count();
        }
        level = std::move(next);
    }
    return level.front().count();
}

/// A merge that keeps the next entry of each input in a heap.
inline std::size_t priority_queue(std::span<const view> inputs, target out) {
    using entry = std::pair<std::uint32_t, std::uint32_t>;  // index, input
    std::priority_queue<entry, std::vector<entry>, std::greater<>> heap;
    std::vector<std::size_t> at(inputs.size(), 0);
    for (std::uint32_t k = 0; k < inputs.size(); ++k)
        if (inputs[k].count() > 0) heap.push({inputs[k].indices[0], k});
    std::size_t count = 0;
    while (!heap.empty()) {
        const auto [index, k] = heap.top();
        heap.pop();
        const float value = inputs[k].values[at[k]++];
        if (at[k] < inputs[k].count()) heap.push({inputs[k].indices[at[k]], k});
        if (count > 0 && out.indices[count - 1] == index) {
            out.values[count - 1] += value;
        } else {
            out.indices[count] = index;
            out.values[count++] = value;
        }
    }
    return count;
}

inline void scatter(view x, float* dense) {
    for (std::size_t j = 0; j < x.count(); ++j) dense[x.indices[j]] += x.values[j];
}

}  // namespace baseline
