#pragma once

#include <rill/concept/topology.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// A node of a preorder tree, `root`, and the consecutive ranks `[first, last)` of which its subtree consists.
///
/// The ranks on each side of the root are divided into nearly equal consecutive chunks: at most `arity` on both sides
/// together, but at least one on each side that has ranks. The first rank of a chunk is a child of the node and the
/// root of its chunk. So a node folds the sums of its children and its own contribution in ascending order of ranks.
struct subtree {
    rank_t root = 0;
    rank_t first = 0;
    rank_t last = 1;

    constexpr int size() const { return last - first; }
    constexpr bool contains(rank_t rank) const { return first <= rank && rank < last; }

    constexpr int children(int arity) const { return chunks_before(arity) + chunks_after(arity); }

    /// Child `i` of `children(arity)`, in ascending order of ranks.
    constexpr subtree child(int arity, int i) const {
        const int before = chunks_before(arity);
        if (i < before) return chunk(first, root - first, before, i);
        return chunk(root + 1, last - root - 1, chunks_after(arity), i - before);
    }

    /// The child whose ranks include `rank`, which is not the root.
    constexpr subtree child_with(int arity, rank_t rank) const {
        const int before = chunks_before(arity);
        if (rank < root) return chunk(first, root - first, before, chunk_of(root - first, before, rank - first));
        const int n = last - root - 1;
        const int after = chunks_after(arity);
        return chunk(root + 1, n, after, chunk_of(n, after, rank - root - 1));
    }

    /// Edges from the root to the deepest rank.
    constexpr int depth(int arity) const {
        if (size() == 1) return 0;
        const int before = largest(root - first, chunks_before(arity));
        const int after = largest(last - root - 1, chunks_after(arity));
        int depth = 1;
        for (int n = before > after ? before : after; n > 1; n = largest(n - 1, arity)) ++depth;
        return depth;
    }

    friend constexpr bool operator==(subtree, subtree) = default;

  private:
    // Not inlined: every query of a schedule asks for it, and it divides.
    [[gnu::noinline]] constexpr int chunks_before(int arity) const {
        const int before = root - first;
        if (before == 0 || size() - 1 == before) return smaller(arity, before);
        const int share = static_cast<int>((2LL * arity * before + size() - 1) / (2LL * (size() - 1)));
        const int most = arity > 1 ? arity - 1 : 1;
        return smaller(share < 1 ? 1 : smaller(share, most), before);
    }
    [[gnu::noinline]] constexpr int chunks_after(int arity) const {
        const int rest = arity - chunks_before(arity);
        return smaller(rest < 1 ? 1 : rest, last - root - 1);
    }

    static constexpr int smaller(int a, int b) { return a < b ? a : b; }
    static constexpr int largest(int n, int chunks) { return n == 0 ? 0 : (n + chunks - 1) / chunks; }

    /// Chunk `i` of `chunks` chunks of the `n` ranks from `begin` on; the first `n % chunks` chunks are one longer.
    [[gnu::noinline]] static constexpr subtree chunk(rank_t begin, int n, int chunks, int i) {
        const int lo = begin + i * (n / chunks) + smaller(i, n % chunks);
        return {lo, lo, lo + n / chunks + (i < n % chunks ? 1 : 0)};
    }
    static constexpr int chunk_of(int n, int chunks, int position) {
        const int each = n / chunks;
        const int in_longer = (n % chunks) * (each + 1);
        if (position < in_longer) return position / (each + 1);
        return n % chunks + (position - in_longer) / each;
    }
};

}}}  // namespace rill::RILL_ABI::topology
