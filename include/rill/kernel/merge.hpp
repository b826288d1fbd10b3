// Merging two sparse vectors.
#pragma once

#include <rill/core/addition.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/kernel/detail/add_avx512.hpp>
#include <rill/kernel/detail/pick.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// The destination of a merge. `count` entries have been written.
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
        rill::detail::copy_elements(x.indices.data() + first, last - first, indices + count);
        rill::detail::copy_elements(x.values.data() + first, last - first, values + count);
        count += last - first;
    }
};

/// Returns the first position from `from` on whose index is not below `bound`, by doubling steps and then bisection.
template <IndexType Index>
std::size_t gallop(std::span<const Index> indices, std::size_t from, Index bound) {
    std::size_t step = 1;
    while (from + step < indices.size() && indices[from + step] < bound) step *= 2;
    return first_not_below(indices.data(), from, std::min(from + step, indices.size()), bound);
}

/// A vector that is more than this many times as long as the other is copied in the stretches between the other's
/// entries.
inline constexpr std::size_t much_longer = 32;

/// Merges a short vector with a much longer one, in this order or the other, by copying the stretches of the long one
/// between the entries of the short one.
template <Element T, IndexType Index, class Fold>
void merge_into_long(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    const bool is_short_first = a.count() < b.count();
    const sparse_view<T, Index> few = is_short_first ? a : b, many = is_short_first ? b : a;
    std::size_t j = 0;
    for (std::size_t i = 0; i < few.count(); ++i) {
        const std::size_t next = gallop(many.indices, j, few.indices[i]);
        out.append(many, j, next);
        j = next;
        if (j < many.count() && many.indices[j] == few.indices[i]) {
            const T one = few.values[i], other = many.values[j];
            out.push(few.indices[i], is_short_first ? fold(one, other) : fold(other, one));
            ++j;
        } else {
            out.push(few.indices[i], few.values[i]);
        }
    }
    out.append(many, j, many.count());
}

/// Whether an unneeded sum may be computed: floating-point addition has no visible effect.
template <Element T, class Fold>
inline constexpr bool adds_freely = std::floating_point<T> && std::same_as<std::remove_cvref_t<Fold>, addition>;

/// The positions of a merge: the entries left of a (i) and of b (j), and where the next result goes.
struct merge_cursor {
    std::size_t i, i_end;
    std::size_t j, j_end;
    std::size_t to;

    bool has_both() const { return i < i_end && j < j_end; }
};

/// Moves the lower of the next entries to `out`, or the fold of both. Which of two different indices comes first is
/// unpredictable: no branch depends on it.
template <Element T, IndexType Index, class Fold>
[[gnu::always_inline]] inline void merge_one(sparse_view<T, Index> a, sparse_view<T, Index> b,
                                             sparse_sink<T, Index> out, merge_cursor& at, Fold& fold) {
    const Index left = a.indices[at.i], right = b.indices[at.j];
    const T x = a.values[at.i], y = b.values[at.j];
    const std::size_t take_left = left <= right, take_right = right <= left;
    out.indices[at.to] = std::min(left, right);
    if constexpr (adds_freely<T, Fold>)
        out.values[at.to] = pick(take_left, pick(take_right, fold(x, y), x), y);
    else
        out.values[at.to] = left == right ? fold(x, y) : pick(take_left, x, y);
    at.i += take_left;
    at.j += take_right;
    ++at.to;
}

/// Completes the merge and returns where the result ends.
template <Element T, IndexType Index, class Fold>
std::size_t merge_rest(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index> out, merge_cursor at,
                       Fold& fold) {
    while (at.has_both()) merge_one(a, b, out, at, fold);
    out.count = at.to;
    out.append(a, at.i, at.i_end);
    out.append(b, at.j, at.j_end);
    return out.count;
}

/// Interleaves two merges, below and above the middle of what is left of `a`: while one waits for an index, the other
/// proceeds. Then moves the upper result to the end of the lower one.
template <Element T, IndexType Index, class Fold>
void merge_halves(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, merge_cursor all,
                  Fold& fold) {
    if (!all.has_both()) {
        out.count = merge_rest(a, b, out, all, fold);
        return;
    }
    const std::size_t i = all.i + (all.i_end - all.i) / 2;
    const std::size_t j = gallop(b.indices.first(all.j_end), all.j, a.indices[i]);
    const std::size_t middle = all.to + (i - all.i) + (j - all.j);
    merge_cursor lower{all.i, i, all.j, j, all.to}, upper{i, all.i_end, j, all.j_end, middle};
    while (lower.has_both() && upper.has_both()) {
        merge_one(a, b, out, lower, fold);
        merge_one(a, b, out, upper, fold);
    }
    const std::size_t below = merge_rest(a, b, out, lower, fold), end = merge_rest(a, b, out, upper, fold);
    if (below != middle) {
        rill::detail::copy_elements(out.indices + middle, end - middle, out.indices + below);
        rill::detail::copy_elements(out.values + middle, end - middle, out.values + below);
    }
    out.count = below + (end - middle);
}

/// Merges stretch by stretch, so that the entries that `merge_halves` moves lie in the L1 cache.
template <Element T, IndexType Index, class Fold>
void merge_evenly(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    constexpr std::size_t stretch = 4096;
    merge_cursor part{0, 0, 0, 0, out.count};
    for (; part.i < a.count(); part.i = part.i_end, part.j = part.j_end, part.to = out.count) {
        const bool last = a.count() - part.i <= stretch;
        part.i_end = last ? a.count() : part.i + stretch;
        part.j_end = last ? b.count() : gallop(b.indices, part.j, a.indices[part.i_end]);
        merge_halves(a, b, out, part, fold);
    }
}

template <Element T, IndexType Index>
sparse_view<T, Index> entries_between(sparse_view<T, Index> x, std::size_t first, std::size_t last) {
    return {x.indices.subspan(first, last - first), x.values.subspan(first, last - first)};
}

/// Concatenates disjoint ranges and merges very unequal lengths by stretches. For all other inputs it calls `evenly(a,
/// b, out)`.
template <Element T, IndexType Index, class Fold, class Evenly>
void merge_by_shape(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold,
                    Evenly evenly) {
    const bool are_apart = a.count() == 0 || b.count() == 0 || a.indices.back() < b.indices.front();
    if (are_apart || b.indices.back() < a.indices.front()) {
        for (const sparse_view<T, Index>& each : {are_apart ? a : b, are_apart ? b : a})
            out.append(each, 0, each.count());
    } else if (a.count() < b.count() / much_longer || b.count() < a.count() / much_longer) {
        merge_into_long(a, b, out, fold);
    } else {
        evenly(a, b, out);
    }
}

template <Element T, IndexType Index, class Fold>
void merge_portably(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    merge_by_shape(a, b, out, fold, [&](auto x, auto y, auto& to) { merge_evenly(x, y, to, fold); });
}

/// Whether there is an AVX-512 implementation for these types and this fold.
template <Element T, IndexType Index, class Fold>
inline constexpr bool adds_by_avx512 =
#if defined(RILL_DETAIL_AVX512)
    std::same_as<T, float> && std::same_as<Index, std::uint32_t> && adds_freely<T, Fold>;
#else
    false;
#endif

template <Element T, IndexType Index, class Fold>
std::size_t merge_to(sparse_view<T, Index> a, sparse_view<T, Index> b, Index* indices, T* values, Fold& fold) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
#if defined(RILL_DETAIL_AVX512)
    if constexpr (adds_by_avx512<T, Index, Fold>) {
        merge_by_shape(a, b, out, fold, [&](auto x, auto y, auto& to) {
            const auto begun = add_avx512(x, y, to.indices + to.count, to.values + to.count);
            to.count += begun.count;
            merge_portably(entries_between(x, begun.of_a, x.count()), entries_between(y, begun.of_b, y.count()), to,
                           fold);
        });
        return out.count;
    }
#endif
    merge_portably(a, b, out, fold);
    return out.count;
}

}  // namespace detail

/// Writes the union of two sparse vectors and returns its size. Where both have an entry, the result is fold(a's value,
/// b's value). Other entries are copied without a call of `fold`, except that floating-point `addition` may compute
/// sums that are not used.
///
/// `indices` and `values` hold at least a.count() + b.count() and overlap no input. Cost: one pass. Disjoint ranges are
/// concatenated; of very unequal inputs, the longer one is copied in stretches.
template <Element T, IndexType Index, class Fold>
std::size_t merge(sparse_view<T, Index> a, sparse_view<T, Index> b, std::span<Index> indices, std::span<T> values,
                  Fold&& fold) {
    RILL_EXPECTS(a.indices.size() == a.values.size() && b.indices.size() == b.values.size(),
                 "merge: each index has one value");
    RILL_EXPECTS(indices.size() >= a.count() + b.count() && values.size() >= a.count() + b.count(),
                 "merge: too little room for the result");
    return detail::merge_to(a, b, indices.data(), values.data(), fold);
}

}}}  // namespace rill::RILL_ABI::kernel
