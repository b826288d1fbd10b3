// Selection of the k largest magnitudes of every bucket.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/kernel/detail/collect.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/select.hpp>
#include <rill/kernel/select_bounds.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// The largest magnitude of the entries j, j + 64, j + 128, … for each j < 64.
template <Element T>
class column_maxima {
    using key = magnitude_key<T>;

  public:
    explicit column_maxima(std::span<const T> x) {
        std::size_t i = 0;
        for (; i + block <= x.size(); i += block)
            for (std::size_t j = 0; j < block; ++j) keys_[j] = std::max(keys_[j], magnitude(x[i + j]));
        for (std::size_t j = 0; i + j < x.size(); ++j) keys_[j] = std::max(keys_[j], magnitude(x[i + j]));
        least_ = most_ = keys_[0];
        for (const auto each : keys_) most_ = std::max(most_, each);
        for (const auto each : keys_) least_ = std::min(least_, each);
    }

    key most() const { return most_; }

    /// Returns a magnitude that at least `k` entries reach; hardly more entries reach it when the large ones lie in
    /// different columns.
    key reached_by(std::size_t k) const {
        if (k >= block) return k == block ? least_ : 0;
        return detail::reached_by(keys_, block, k, least_, most_);
    }

  private:
    alignas(64) key keys_[block] = {};
    key least_, most_;
};

/// Does what `select_largest` does, faster for a bucket that stays in cache. Requires 0 < k < x.size().
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
std::size_t select_in_bucket(std::span<const T> x, std::size_t first, std::size_t k, Index* out,
                             select_scratch& scratch) {
    const column_maxima<T> columns(x);
    if (columns.most() > largest_magnitude<T>) refuse_nan(x, first);
    const auto reach = columns.reached_by(k);
    auto found = room_for_candidates<T, Index>(scratch, x.size());
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) collect_reaching<T, Index, Steps>(x.data() + i, first + i, reach, found);
    for (; i < x.size(); ++i)
        if (magnitude(x[i]) >= reach) found.append(first + i, magnitude(x[i]));
    if (found.count == k) {
        rill::detail::copy_elements(found.indices, k, out);
    } else {
        const std::size_t padded = (found.count + block - 1) / block * block;
        // padding: no bound above zero counts it
        rill::detail::fill_elements(found.keys + found.count, padded - found.count, magnitude_key<T>{0});
        const auto at = cut_by_bisection(found.keys, padded, k, reach, columns.most());
        emit_candidates<T, Index, Steps>(found, at, k, out);
    }
    return k;
}

/// Selects in each bucket of `x`, whose first coordinate is `begin`; returns how many indices were written.
template <Element T, IndexType Index>
std::size_t select_in_buckets(std::span<const T> x, std::size_t begin, std::size_t bucket, std::size_t k, Index* out,
                              select_scratch& scratch) {
    constexpr std::size_t in_cache = 8192;
    std::size_t count = 0;
    for (std::size_t first = 0; first < x.size(); first += std::min(bucket, x.size() - first)) {
        const auto part = x.subspan(first, std::min(bucket, x.size() - first));
        const bool bisect = k > 0 && k < part.size() && part.size() <= in_cache;
        count += bisect ? select_in_bucket(part, begin + first, k, out + count, scratch)
                        : select_largest(part, begin + first, k, out + count, scratch);
    }
    return count;
}

}  // namespace detail

/// Returns how many of `n` entries `bucket_top_k` selects.
constexpr std::size_t bucket_top_k_count(std::size_t n, std::size_t bucket, std::size_t k) {
    return n / bucket * std::min(k, bucket) + std::min(k, n % bucket);
}

/// Writes, in ascending order, the coordinates of the k largest magnitudes of each bucket, and returns their number.
///
/// A bucket has `bucket` consecutive entries; the last one may be shorter. Of equal magnitudes the lower coordinate is
/// preferred. A bucket of at most k entries is selected whole. `indices` holds at least `bucket_top_k_count(n, bucket,
/// k)`. Throws `invalid_value` naming the lowest coordinate that is NaN; `indices` is then unspecified.
template <Element T, IndexType Index, Executor Exec = serial>
std::size_t bucket_top_k(std::span<const T> x, std::size_t bucket, std::size_t k, std::span<Index> indices,
                         select_scratch& scratch, [[maybe_unused]] const Exec& executor = {}) {
    RILL_EXPECTS(bucket > 0, "bucket_top_k: a bucket holds at least one entry");
    RILL_EXPECTS(detail::fits<Index>(x.size()), "bucket_top_k: the index type cannot number every coordinate");
    RILL_EXPECTS(indices.size() >= bucket_top_k_count(x.size(), bucket, k),
                 "bucket_top_k: too few indices for the result");
    if constexpr (may_divide<Exec>)
        if (const tasks all = tasks_for(executor, x.size(), bucket); all.count() > 1) {
            scratch.of_tasks.provide(all.count());
            run_tasks(executor, all, [&](segment part, std::size_t task) {
                detail::select_in_buckets(x.subspan(part.begin, part.size()), part.begin, bucket, k,
                                          indices.data() + bucket_top_k_count(part.begin, bucket, k),
                                          scratch.of_tasks[task]);
            });
            return bucket_top_k_count(x.size(), bucket, k);
        }
    return detail::select_in_buckets(x, 0, bucket, k, indices.data(), scratch);
}

}}}  // namespace rill::RILL_ABI::kernel
