// Merging two sparse vectors.
#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/sparse_view.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Where a merge writes.
template <Element T, IndexType Index>
struct sparse_sink {
    Index* indices = nullptr;
    T* values = nullptr;
    std::size_t count = 0;

    void push(Index i, T value) {
        indices[count] = i;
        values[count++] = value;
    }
    void append(sparse_view<T, Index> x, std::size_t first, std::size_t last) {
        std::copy(x.indices.begin() + static_cast<std::ptrdiff_t>(first),
                  x.indices.begin() + static_cast<std::ptrdiff_t>(last), indices + count);
        std::copy(x.values.begin() + static_cast<std::ptrdiff_t>(first),
                  x.values.begin() + static_cast<std::ptrdiff_t>(last), values + count);
        count += last - first;
    }
};

/// The first position from `from` on whose index is not below `bound`: doubling steps, then bisection.
template <IndexType Index>
std::size_t gallop(std::span<const Index> indices, std::size_t from, Index bound) {
    std::size_t step = 1;
    while (from + step < indices.size() && indices[from + step] < bound) step *= 2;
    const auto first = indices.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = indices.begin() + static_cast<std::ptrdiff_t>(std::min(from + step, indices.size()));
    return static_cast<std::size_t>(std::lower_bound(first, last, bound) - indices.begin());
}

/// Merges a short vector into a much longer one by copying the stretches between its entries.
template <Element T, IndexType Index, class Pair>
void merge_into_long(sparse_view<T, Index> few, sparse_view<T, Index> many, sparse_sink<T, Index>& out, Pair pair) {
    std::size_t j = 0;
    for (std::size_t i = 0; i < few.count(); ++i) {
        const std::size_t next = gallop(many.indices, j, few.indices[i]);
        out.append(many, j, next);
        j = next;
        if (j < many.count() && many.indices[j] == few.indices[i]) {
            out.push(few.indices[i], pair(few.values[i], many.values[j]));
            ++j;
        } else {
            out.push(few.indices[i], few.values[i]);
        }
    }
    out.append(many, j, many.count());
}

/// Merges vectors of similar length. Which of two different indices comes first is unpredictable: no branch depends on
/// it.
template <Element T, IndexType Index, class Fold>
void merge_evenly(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    std::size_t i = 0, j = 0;
    const Index* ai = a.indices.data();
    const Index* bi = b.indices.data();
    while (i < a.count() && j < b.count()) {
        const Index left = ai[i], right = bi[j];
        if (left == right) {
            out.push(left, fold(a.values[i++], b.values[j++]));
            continue;
        }
        const bool take_left = left < right;
        const T* value = take_left ? &a.values[i] : &b.values[j];
        out.push(take_left ? left : right, *value);
        i += take_left ? 1U : 0U;
        j += take_left ? 0U : 1U;
    }
    out.append(a, i, a.count());
    out.append(b, j, b.count());
}

template <Element T, IndexType Index, class Fold>
std::size_t merge_to(sparse_view<T, Index> a, sparse_view<T, Index> b, Index* indices, T* values, Fold& fold) {
    constexpr std::size_t much_longer = 32;
    sparse_sink<T, Index> out{.indices = indices, .values = values};
    if (a.count() == 0 || b.count() == 0 || a.indices.back() < b.indices.front()) {
        out.append(a, 0, a.count());
        out.append(b, 0, b.count());
    } else if (b.indices.back() < a.indices.front()) {
        out.append(b, 0, b.count());
        out.append(a, 0, a.count());
    } else if (a.count() < b.count() / much_longer) {
        merge_into_long(a, b, out, [&](T few, T many) { return fold(few, many); });
    } else if (b.count() < a.count() / much_longer) {
        merge_into_long(b, a, out, [&](T few, T many) { return fold(many, few); });
    } else {
        merge_evenly(a, b, out, fold);
    }
    return out.count;
}

}  // namespace detail

/// Writes the union of two sparse vectors and returns its size. Where both have an entry it is fold(a's, b's); other
/// entries are copied, and `fold` is not called for them.
///
/// `indices` and `values` hold at least a.count() + b.count() and overlap no input. Cost: one pass; disjoint ranges are
/// concatenated, very unequal lengths copied in stretches.
template <Element T, IndexType Index, class Fold>
std::size_t merge(sparse_view<T, Index> a, sparse_view<T, Index> b, std::span<Index> indices, std::span<T> values,
                  Fold&& fold) {
    RILL_EXPECTS(a.indices.size() == a.values.size() && b.indices.size() == b.values.size(),
                 "merge: each index has one value");
    RILL_EXPECTS(indices.size() >= a.count() + b.count() && values.size() >= a.count() + b.count(),
                 "merge: too little room for the result");
    return detail::merge_to(a, b, indices.data(), values.data(), fold);
}

}  // namespace rill::inline RILL_ABI::kernel
