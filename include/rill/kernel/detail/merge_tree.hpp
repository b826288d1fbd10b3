// Merges sparse vectors by pairs, the results by pairs, and so on. Entries at one coordinate stay side by side in the
// order of the inputs until they are folded at the end, so that the shape of the tree does not affect the result.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/pick.hpp>
#include <rill/kernel/detail/scratch.hpp>
#include <rill/kernel/merge.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Returns the lowest index that no cursor has passed. Sets `any` to false if all inputs are used up.
template <Element T, IndexType Index>
Index lowest_index(std::span<const sparse_view<T, Index>> inputs, const std::size_t* cursors, bool& any) {
    Index lowest = std::numeric_limits<Index>::max();
    any = false;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (cursors[k] == inputs[k].count()) continue;
        any = true;
        lowest = std::min(lowest, inputs[k].indices[cursors[k]]);
    }
    return lowest;
}

/// Two runs to merge, and their destination.
template <class Entry>
struct run_pair {
    const Entry* a;
    std::size_t of_a;
    const Entry* b;
    std::size_t of_b;
    Entry* to;

    std::size_t count() const { return of_a + of_b; }
};

/// Runs of sorted entries. A sentinel above all others ends each run, so that merging needs no check for the end.
template <Element T, IndexType Index>
class plain_runs {
  public:
    struct entry {
        T value;
        Index key;  // coordinate, counted from the begin of the stretch
    };

    explicit plain_runs(std::size_t) {}

    static constexpr std::size_t room_for(std::size_t count) { return count + 1; }
    static const entry* end_of(const entry* run, std::size_t count) { return run + count; }
    static constexpr Index widest() { return std::numeric_limits<Index>::max(); }

    static void load(sparse_view<T, Index> x, Index base, std::size_t, entry* to) {
        for (std::size_t i = 0; i < x.count(); ++i) to[i] = {x.values[i], static_cast<Index>(x.indices[i] - base)};
        to[x.count()].key = widest();
    }

    /// Merges two pairs at a time: while one merge waits for a key, the other proceeds.
    static void merge(run_pair<entry> x, run_pair<entry> y) {
        const std::size_t both = std::min(x.count(), y.count());
        entry *const x_end = x.to + x.count(), *const y_end = y.to + y.count();
        for (std::size_t i = 0; i < both; ++i) {
            merge_one(x);
            merge_one(y);
        }
        while (x.to != x_end) merge_one(x);
        while (y.to != y_end) merge_one(y);
        x_end->key = y_end->key = widest();
    }

    template <class Fold>
    static void fold_to(const entry* run, std::size_t count, Index base, sparse_sink<T, Index>& out, Fold& fold) {
        for (const entry* const end = run + count; run != end;) {
            const Index key = run->key;
            T value = run++->value;
            for (; run->key == key; ++run) value = fold(value, run->value);
            out.push(static_cast<Index>(base + key), value);
        }
    }

  private:
    /// Moves the lower entry; of equal keys, the one of `a`. Uses no branch, because the comparison is unpredictable.
    [[gnu::always_inline]] static void merge_one(run_pair<entry>& x) {
        const std::size_t take_b = x.b->key < x.a->key;
        *x.to++ = *pick(take_b, x.b, x.a);
        x.b += take_b;
        x.a += 1 - take_b;
    }
};

/// Merges stretch by stretch, two stretches at a time, so that intermediate runs lie in the L2 cache.
template <class Runs, Element T, IndexType Index>
class merge_tree {
  public:
    /// Entries of a stretch; half as many and four times as many are as fast (Zen 4, 8 inputs of 16M coordinates).
    static constexpr std::size_t stretch = 8192;

    /// `views`: as many as there are inputs; the tree uses them, too.
    merge_tree(std::span<const sparse_view<T, Index>> inputs, std::span<sparse_view<T, Index>> views, buffer& cursors,
               buffer& entries)
        : inputs_(inputs), views_(views), runs_(inputs.size()) {
        const std::size_t ways = inputs.size();
        std::size_t longest = 0;
        for (std::size_t k = 0; k < ways; ++k) longest = std::max(longest, inputs[k].count());
        share_ = std::min(longest, std::max<std::size_t>(stretch / ways, 64));
        cursors_ = room<std::size_t>(cursors, 3 * ways);
        rill::detail::fill_elements(cursors_, ways, std::size_t{0});
        const std::size_t size = ways * Runs::room_for(share_);
        entry* first = room<entry>(entries, 4 * size);
        for (part& each : parts_) {
            each.counts = cursors_ + static_cast<std::size_t>(&each - parts_ + 1) * ways;
            for (entry*& runs : each.runs) {
                runs = first;
                first += size;
            }
        }
    }

    /// Appends the merge of the next two stretches to `out`; returns how many entries they had.
    template <class Fold>
    std::size_t merge_next(sparse_sink<T, Index>& out, Fold& fold) {
        for (part& each : parts_) cut(each);
        const std::size_t last = merge_runs();
        std::size_t merged = 0;
        for (part& each : parts_) {
            runs_.fold_to(each.runs[last], each.counts[0], each.base, out, fold);
            merged += each.counts[0];
        }
        return merged;
    }

    /// Skips as much as `times` stretches and gives it to the caller, as `views` of the inputs.
    void skip(std::size_t times) { take_stretch(times * share_, std::numeric_limits<Index>::max()); }

  private:
    using entry = typename Runs::entry;

    /// A stretch of coordinates: its first coordinate, the number of entries of each run, the runs, and room for the
    /// next level's runs.
    struct part {
        Index base = 0;
        std::size_t* counts = nullptr;
        entry* runs[2] = {};
    };

    void cut(part& to) {
        entry* run = to.runs[0];
        to.base = take_stretch(share_, runs_.widest());
        for (std::size_t k = 0; k < views_.size(); ++k) {
            to.counts[k] = views_[k].count();
            runs_.load(views_[k], to.base, k, run);
            run += Runs::room_for(to.counts[k]);
        }
    }

    /// Takes the next stretch of coordinates: at most `extent` wide, and so narrow that no input has more than `share`
    /// entries in it. Sets the views to its entries, of which there are none if nothing is left, and returns where it
    /// begins.
    [[gnu::noinline]] Index take_stretch(std::size_t share, Index extent) {
        bool any = false;
        const Index base = lowest_index(inputs_, cursors_, any);
        for (std::size_t k = 0; k < inputs_.size(); ++k)
            if (inputs_[k].count() - cursors_[k] > share)
                extent = std::min(extent, static_cast<Index>(inputs_[k].indices[cursors_[k] + share] - base));
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const std::size_t first = cursors_[k];
            const Index* const indices = inputs_[k].indices.data();
            std::size_t end = std::min(first + share, inputs_[k].count());
            for (std::size_t low = first; low < end;) {  // bisection for the first index that is not in the stretch
                const std::size_t middle = low + (end - low) / 2;
                if (indices[middle] - base < extent)
                    low = middle + 1;
                else
                    end = middle;
            }
            cursors_[k] = end;
            views_[k] = entries_between(inputs_[k], first, end);
        }
        return base;
    }

    /// Merges until each part has one run left; returns in which of its two arrays this run is.
    std::size_t merge_runs() {
        std::size_t now = 0;
        for (std::size_t left = inputs_.size(); left > 1; left = (left + 1) / 2, now = 1 - now) {
            const entry* from[2] = {parts_[0].runs[now], parts_[1].runs[now]};
            entry* to[2] = {parts_[0].runs[1 - now], parts_[1].runs[1 - now]};
            for (std::size_t k = 0; k < left; k += 2)
                runs_.merge(next_pair(parts_[0].counts, k, left, from[0], to[0]),
                            next_pair(parts_[1].counts, k, left, from[1], to[1]));
        }
        return now;
    }

    /// Returns runs k and k + 1 of `left`, and advances `from` and `to`. A last run without a partner is merged with an
    /// empty one.
    static run_pair<entry> next_pair(std::size_t* counts, std::size_t k, std::size_t left, const entry*& from,
                                     entry*& to) {
        run_pair<entry> pair{from, counts[k], Runs::end_of(from, counts[k]), 0, to};
        from += Runs::room_for(pair.of_a);
        if (k + 1 < left) {
            pair.b = from;
            pair.of_b = counts[k + 1];
            from += Runs::room_for(pair.of_b);
        }
        to += Runs::room_for(pair.count());
        counts[k / 2] = pair.count();
        return pair;
    }

    std::span<const sparse_view<T, Index>> inputs_;
    std::span<sparse_view<T, Index>> views_;
    Runs runs_;
    std::size_t share_ = 0;
    std::size_t* cursors_ = nullptr;
    part parts_[2];
};

}}}  // namespace rill::RILL_ABI::kernel::detail
