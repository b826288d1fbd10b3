// Exact selection of the k largest magnitudes.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/kernel/detail/collect.hpp>
#include <rill/kernel/detail/scratch.hpp>
#include <rill/kernel/detail/select_pages.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/select_bounds.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// Returns the cut below the `k` largest magnitudes, 0 < k <= n, digit by digit. Cost: a pass per 11 bits, for every
/// input.
template <Element T>
cut<magnitude_key<T>> cut_by_digits(std::span<const T> x, std::size_t k) {
    using key = magnitude_key<T>;
    constexpr int digit = 11;
    constexpr std::size_t digits = std::size_t{1} << digit;
    constexpr int bits = sizeof(key) * 8;
    key prefix = 0;
    for (int high = bits; high > 0; high -= digit) {  // the bits from `high` upwards are known
        const int low = high > digit ? high - digit : 0;
        std::size_t histogram[digits]{};
        const key known = high == bits ? key{0} : static_cast<key>(~key{0} << high);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const key m = magnitude(x[i]);
            if ((m & known) == prefix) ++histogram[static_cast<std::size_t>((m & ~known) >> low)];
        }
        std::size_t d = digits - 1;
        for (; histogram[d] < k; --d) k -= histogram[d];
        prefix |= static_cast<key>(d) << low;
    }
    return {prefix, k};
}

template <Element T, IndexType Index>
candidates<T, Index> room_for_candidates(select_scratch& scratch, std::size_t capacity) {
    return {.indices = room<Index>(scratch.indices, capacity + block),
            .keys = room<magnitude_key<T>>(scratch.keys, capacity + block),
            .capacity = capacity};
}

template <IndexType Index>
tied<Index> room_for_ties(select_scratch& scratch, std::size_t capacity) {
    return {.indices = room<Index>(scratch.ties, capacity + block), .capacity = capacity};
}

/// The keys among which the cut lies, and the largest key of all candidates.
template <class Key>
struct middle_keys {
    Key* keys = nullptr;
    std::size_t count = 0;
    Key largest = 0;
};

/// Gathers the candidates' keys that are at most `high`. The others lie above the cut, unless the sample misled.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
middle_keys<magnitude_key<T>> gather_middle(const candidates<T, Index>& above, magnitude_key<T> high,
                                            select_scratch& scratch) {
    middle_keys<magnitude_key<T>> middle{room<magnitude_key<T>>(scratch.middle, above.capacity + block)};
    std::size_t i = 0;
    for (; i + block <= above.count; i += block) {
        for (std::size_t j = 0; j < block; ++j) middle.largest = std::max(middle.largest, above.keys[i + j]);
        middle.count += Steps::keep_at_most(above.keys + i, high, middle.keys + middle.count);
    }
    for (; i < above.count; ++i) {
        middle.largest = std::max(middle.largest, above.keys[i]);
        if (above.keys[i] <= high) middle.keys[middle.count++] = above.keys[i];
    }
    return middle;
}

/// Writes two ascending runs of indices, of which none is in both, as one.
template <IndexType Index>
void merge_ascending(const Index* a, std::size_t of_a, const Index* b, std::size_t of_b, Index* out) {
    std::size_t i = 0, j = 0;
    while (i < of_a && j < of_b) *out++ = b[j] < a[i] ? b[j++] : a[i++];
    rill::detail::copy_elements(a + i, of_a - i, out);
    rill::detail::copy_elements(b + j, of_b - j, out + (of_a - i));
}

/// Writes the `k` coordinates of `x` that a cut selects.
template <Element T, IndexType Index>
void emit_cut(std::span<const T> x, std::size_t first, cut<magnitude_key<T>> at, std::size_t k, Index* out,
              select_scratch& scratch) {
    auto above = room_for_candidates<T, Index>(scratch, k);
    auto ties = room_for_ties<Index>(scratch, at.ties);
    collect(x, first, at.key, above, ties);
    const auto largest = above.count > 0 ? range_of(above.keys, above.count).high : at.key;
    if (largest > largest_magnitude<T>) refuse_nan(x, first);
    merge_ascending<Index>(above.indices, above.count, ties.indices, ties.count, out);
}

/// Returns the cut below the `k` largest candidates.
template <Element T, IndexType Index>
cut<magnitude_key<T>> cut_candidates(const candidates<T, Index>& above, middle_keys<magnitude_key<T>> middle,
                                     std::size_t k) {
    const std::size_t sure = above.count - middle.count;
    if (sure < k) return cut_keys(middle.keys, middle.count, k - sure);
    rill::detail::copy_elements(above.keys, above.count, middle.keys);
    return cut_keys(middle.keys, above.count, k);
}

/// Returns how many candidates there are up to and including the last tie that the cut selects.
template <Element T, IndexType Index>
std::size_t end_of_ties(const candidates<T, Index>& above, cut<magnitude_key<T>> at) {
    std::size_t i = 0;
    for (; i + block <= above.count; i += block) {
        std::uint32_t equal = 0;
        for (std::size_t j = 0; j < block; ++j) equal += above.keys[i + j] == at.key ? 1U : 0U;
        if (equal >= at.ties) break;
        at.ties -= equal;
    }
    for (; at.ties > 0; ++i) at.ties -= above.keys[i] == at.key ? 1U : 0U;
    return i;
}

/// Writes the coordinates of the `k` candidates that a cut selects.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void emit_candidates(const candidates<T, Index>& above, cut<magnitude_key<T>> at, std::size_t k, Index* out) {
    const std::size_t turn = end_of_ties(above, at);
    std::size_t count = 0;
    const auto emit = [&](std::size_t i, std::size_t end, magnitude_key<T> bound) {
        for (; i + block <= end && count + block <= k; i += block)
            count += Steps::keep_at_least(above.indices + i, above.keys + i, bound, out + count);
        for (; i < end && count < k; ++i) {
            out[count] = above.indices[i];
            count += above.keys[i] >= bound ? 1U : 0U;
        }
    };
    emit(0, turn, at.key);
    emit(turn, above.count, at.key + 1);
}

/// Selects in little more than one pass. Returns false, and writes nothing, when the sample misled.
template <Element T, IndexType Index>
bool select_by_sample(std::span<const T> x, std::size_t first, std::size_t k, Index* out, select_scratch& scratch) {
    const auto guess = sample_bounds(x, k, scratch);
    if (guess.capacity == 0) return false;
    auto above = room_for_candidates<T, Index>(scratch, std::max(guess.capacity, k));
    auto ties = room_for_ties<Index>(scratch, k);
    ties.capacity = guess.ties;
    if (!collect(x, first, guess.ties > 0 ? guess.low : guess.low - 1, above, ties)) return false;
    const auto middle = gather_middle(above, guess.high, scratch);
    if (guess.low > largest_magnitude<T> || middle.largest > largest_magnitude<T>) refuse_nan(x, first);
    if (above.count >= k) {
        emit_candidates(above, cut_candidates(above, middle, k), k, out);
        return true;
    }
    if (above.count + ties.count < k) return false;
    merge_ascending<Index>(above.indices, above.count, ties.indices, k - above.count, out);
    return true;
}

/// Selects the `k` largest magnitudes of `x`, whose first coordinate is `first`; writes and returns min(k, n) indices.
template <Element T, IndexType Index>
std::size_t select_largest(std::span<const T> x, std::size_t first, std::size_t k, Index* out,
                           select_scratch& scratch) {
    constexpr std::size_t small = 2048;  // below, sampling costs more than it saves
    if (k == 0 || k >= x.size()) {
        refuse_nan(x, first);
        const std::size_t count = std::min(k, x.size());
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Index>(first + i);
        return count;
    }
    if (x.size() < small) {
        auto* keys = room<magnitude_key<T>>(scratch.middle, x.size());
        for (std::size_t i = 0; i < x.size(); ++i) keys[i] = magnitude(x[i]);
        emit_cut(x, first, cut_keys(keys, x.size(), k), k, out, scratch);
    } else if (!select_by_sample(x, first, k, out, scratch)) {
        emit_cut(x, first, cut_by_digits(x, k), k, out, scratch);
    }
    return k;
}

template <IndexType Index>
constexpr bool fits(std::size_t dimension) {
    return dimension == 0 || dimension - 1 <= static_cast<Index>(-1);
}

}  // namespace detail

/// Writes the coordinates of the k largest magnitudes in ascending order and returns their number, min(k, n). Of equal
/// magnitudes the lower coordinate is preferred.
///
/// `indices` holds at least min(k, n). Cost: one pass over `x` and about two over the output, for every distribution; a
/// few passes when the internal sample misleads or k is close to n. The result is exact and depends on `x` and `k`
/// alone. Throws `invalid_value` naming the lowest coordinate that is NaN; `indices` is then unspecified.
template <Element T, IndexType Index, Executor Exec = serial>
std::size_t top_k(std::span<const T> x, std::size_t k, std::span<Index> indices, select_scratch& scratch,
                  [[maybe_unused]] const Exec& executor = {}) {
    RILL_EXPECTS(detail::fits<Index>(x.size()), "top_k: the index type cannot number every coordinate");
    RILL_EXPECTS(indices.size() >= std::min(k, x.size()), "top_k: too few indices for the result");
    if constexpr (may_divide<Exec>)
        if (0 < k && k < x.size() && tasks_for(executor, x.size()).count() > 1)
            if (detail::select_by_pages(x, k, indices.data(), scratch, executor)) return k;
    return detail::select_largest(x, 0, k, indices.data(), scratch);
}

/// values[i] = x[indices[i]].
template <Element T, IndexType Index, Executor Exec = serial>
void gather(std::span<const T> x, std::span<const Index> indices, std::span<T> values, const Exec& executor = {}) {
    RILL_EXPECTS(values.size() >= indices.size(), "gather: too few values for the indices");
    RILL_EXPECTS_DEBUG(std::all_of(indices.begin(), indices.end(), [&](Index i) { return i < x.size(); }),
                       "gather: an index is outside of the vector");
    run_tasks(executor, tasks_for(executor, indices.size(), 1, 4096), [&](segment part) {
        for (std::size_t i = part.begin; i < part.end; ++i) values[i] = x[static_cast<std::size_t>(indices[i])];
    });
}

}}}  // namespace rill::RILL_ABI::kernel
