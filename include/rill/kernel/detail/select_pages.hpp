// Selection of the k largest magnitudes by several tasks at once.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/collect.hpp>
#include <rill/kernel/detail/scratch.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/select_bounds.hpp>
#include <rill/kernel/tasks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// A page of the candidates that one task found. The large entries may all lie in one place, so that no task can know
/// how much room it needs; therefore all tasks take pages from a common store.
template <Element T>
struct page {
    std::size_t task = 0;
    std::size_t number = 0;  ///< the page's position in the store
    std::size_t count = 0;   ///< entries
    std::size_t middle = 0;  ///< entries that are not above the upper bound
    std::size_t above = 0;   ///< entries above the cut
    std::size_t ties = 0;    ///< entries equal to the cut: first all, later those that are selected
    std::size_t place = 0;   ///< output position of its first selected entry
    magnitude_key<T> largest = 0;
};

/// The candidates of a selection in pages, which come in ascending order of coordinates.
template <Element T, IndexType Index>
class candidate_pages {
    using key = magnitude_key<T>;

  public:
    candidate_pages(select_scratch& scratch, std::size_t capacity, std::size_t takers)
        : most_(capacity / (entries - block) + takers + 1),
          pages_(room<page<T>>(scratch.pages, 2 * most_)),
          indices_(room<Index>(scratch.indices, most_ * entries)),
          keys_(room<key>(scratch.keys, most_ * entries)),
          middle_(room<key>(scratch.middle, most_ * entries)) {}

    /// Collects the entries above `bound`. Returns false if there is no more room.
    template <Executor Exec>
    bool collect(std::span<const T> x, key bound, const Exec& executor) {
        std::atomic<std::size_t> taken = 0;
        run_tasks(executor, tasks_for(executor, x.size(), block),
                  [&](segment part, std::size_t task) { collect_part(x, part, task, bound, taken); });
        if (taken.load() > most_) return false;
        count_ = taken.load();
        sort_by_task();
        return true;
    }

    /// Returns the cut below the `k` largest candidates. Returns nothing if there are fewer candidates, or if the cut
    /// lies above `high`.
    template <Executor Exec>
    std::optional<cut<key>> find_cut(std::size_t k, key high, const Exec& executor) {
        for_each_page(executor, [&](std::size_t at, page<T>& p) { gather_middle(at, p, high); });
        std::size_t all = 0, middle = 0;
        for (std::size_t at = 0; at < count_; ++at) {
            const page<T>& p = sorted()[at];
            rill::detail::copy_elements(middle_ + at * entries, p.middle, middle_ + middle);
            middle += p.middle;
            all += p.count;
        }
        if (all < k || all - middle >= k) return std::nullopt;
        return cut_keys(middle_, middle, k - (all - middle));
    }

    bool has_nan() const {
        return std::any_of(sorted(), sorted() + count_,
                           [](const page<T>& p) { return p.largest > largest_magnitude<T>; });
    }

    /// Writes the coordinates that the cut selects.
    template <Executor Exec>
    void emit(cut<key> at, Index* out, const Exec& executor) {
        for_each_page(executor, [&](std::size_t, page<T>& p) { count_page(p, at.key); });
        std::size_t place = 0;
        for (page<T>* p = sorted(); p != sorted() + count_; ++p) {
            p->place = place;
            p->ties = std::min(p->ties, at.ties);
            at.ties -= p->ties;
            place += p->above + p->ties;
        }
        for_each_page(executor, [&](std::size_t, const page<T>& p) { emit_page(p, at.key, out + p.place); });
    }

  private:
    static constexpr std::size_t entries = 1024;

    /// The pages in the order of tasks. Before sorting, pages lie in the first half of the array, in the order in which
    /// they were taken.
    page<T>* sorted() const { return pages_ + most_; }

    /// Collects the entries of one task. Stops if no page is left.
    void collect_part(std::span<const T> x, segment part, std::size_t task, key bound,
                      std::atomic<std::size_t>& taken) {
        tied<Index> no_ties;
        candidates<T, Index> into;
        std::size_t number = most_;
        const auto close = [&] {
            if (number < most_) pages_[number] = {.task = task, .number = number, .count = into.count};
        };
        std::size_t i = part.begin;
        while (i < part.end) {
            if (number == most_ || into.count + block > entries) {
                close();
                number = taken.fetch_add(1);
                if (number >= most_) return;
                into = {.indices = indices_ + number * entries, .keys = keys_ + number * entries, .capacity = entries};
            }
            if (i + block <= part.end) {
                collect_block(x.data() + i, i, bound, into, no_ties);
                i += block;
            } else {
                for (; i < part.end; ++i) append(magnitude(x[i]), i, bound, into, no_ties);
            }
        }
        close();
    }

    /// Sorts the pages by task. The pages of one task keep their order, because their numbers ascend.
    void sort_by_task() {
        task_counts first{};
        for (std::size_t p = 0; p < count_; ++p)
            if (pages_[p].task + 1 < tasks::most) ++first[pages_[p].task + 1];
        for (std::size_t t = 1; t < tasks::most; ++t) first[t] += first[t - 1];
        for (std::size_t p = 0; p < count_; ++p) sorted()[first[pages_[p].task]++] = pages_[p];
    }

    template <Executor Exec, class Body>
    void for_each_page(const Exec& executor, Body&& body) {
        run_tasks(executor, tasks_for(executor, count_, 1, 8), [&](segment some) {
            for (std::size_t at = some.begin; at < some.end; ++at) body(at, sorted()[at]);
        });
    }

    const key* keys_of(const page<T>& p) const { return keys_ + p.number * entries; }

    void gather_middle(std::size_t at, page<T>& p, key high) {
        const key* const keys = keys_of(p);
        key* const to = middle_ + at * entries;
        key largest = 0;
        std::size_t count = 0;
        for (std::size_t i = 0; i < p.count; ++i) {
            to[count] = keys[i];
            count += keys[i] <= high ? 1U : 0U;
            largest = std::max(largest, keys[i]);
        }
        p.middle = count;
        p.largest = largest;
    }

    void count_page(page<T>& p, key at) const {
        const key* const keys = keys_of(p);
        p.above = p.ties = 0;
        for (std::size_t i = 0; i < p.count; ++i) {
            p.above += keys[i] > at ? 1U : 0U;
            p.ties += keys[i] == at ? 1U : 0U;
        }
    }

    /// Writes a page's selected entries. It needs a branch: a branchless loop would write one entry beyond the page's
    /// own output, where the next page's first entry goes.
    void emit_page(const page<T>& p, key at, Index* out) const {
        const key* const keys = keys_of(p);
        const Index* const indices = indices_ + p.number * entries;
        std::size_t ties = p.ties;
        for (std::size_t i = 0; i < p.count; ++i) {
            const bool tie = keys[i] == at && ties > 0;
            ties -= tie ? 1U : 0U;
            if (keys[i] > at || tie) *out++ = indices[i];
        }
    }

    std::size_t most_;
    page<T>* pages_;
    Index* indices_;
    key* keys_;
    key* middle_;
    std::size_t count_ = 0;
};

/// Selects the `k` largest magnitudes, 0 < k < n, in little more than one pass. Returns false, and writes nothing, if
/// the sample misled, if an entry is NaN, or if so many entries equal the bound that the first of them must be found
/// serially.
template <Element T, IndexType Index, Executor Exec>
bool select_by_pages(std::span<const T> x, std::size_t k, Index* out, select_scratch& scratch, const Exec& executor) {
    const auto guess = sample_bounds(x, k, scratch);
    if (guess.low == guess.high || guess.low > largest_magnitude<T>) return false;
    candidate_pages<T, Index> found(scratch, guess.capacity, tasks_for(executor, x.size(), block).count());
    if (!found.collect(x, guess.low, executor)) return false;
    const auto at = found.find_cut(k, guess.high, executor);
    if (!at || found.has_nan()) return false;
    found.emit(*at, out, executor);
    return true;
}

}}}  // namespace rill::RILL_ABI::kernel::detail
