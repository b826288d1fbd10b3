#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/regular_tree.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The data points `[first, last)`, whose gradients count `coefficient` times.
struct data_share {
    std::size_t first = 0;
    std::size_t last = 0;
    double coefficient = 1;

    constexpr std::size_t count() const { return last - first; }
    friend constexpr bool operator==(const data_share&, const data_share&) = default;
};

/// Which data points each worker of a regular tree computes on, and with which coefficients. The root then gets the
/// gradient of all points, each counted once, although each parent may lose as many children as the code has
/// stragglers.
///
/// The points of a node are cut into the code's partitions, as equal as whole points allow; each child's subtree gets
/// the partitions of its row of the code. A child keeps the first points that it gets and hands the rest down; leaves
/// keep all. If all rows of the code are equally long and all sizes divide, every worker keeps `ideal_load()` points.
/// Otherwise a node keeps the number of points with which the worst load in its subtree comes nearest to
/// `ideal_load()`: within one point, except for some numbers of points that admit no such loads (within 1.5 in all that
/// was tried).
///
/// Cost: O(ranks · (s+1)^depth) time and memory, whatever the number of points; nothing is sent. Determinism: all ranks
/// make the same allocation. Source: CodedReduce, Algorithms 1 and 2 (CR.Allocate) and Theorem 1.
class coded_allocation {
  public:
    /// `code` has as many workers as each parent of `tree` has children.
    template <GradientCode Code>
    coded_allocation(topology::regular_tree tree, const Code& code, std::size_t points)
        : tree_(tree), points_(points), starts_{0, 0} {
        RILL_EXPECTS(code.workers() == tree.width,
                     "coded_allocation: the code has not one worker per child of a parent");
        longest_row(code);
        std::vector<std::vector<data_share>> handed_down{{{0, points, 1}}};  // what each rank leaves to its children
        std::vector<share_plan> plans(static_cast<std::size_t>(tree.depth) + 1);
        for (rank_t rank = 1; rank < tree.size(); ++rank) {
            const auto parent = static_cast<std::size_t>(tree.parent(tree.size(), rank));
            if (tree.child(tree.size(), static_cast<rank_t>(parent), 0) == rank && parent > 0)
                handed_down[parent - 1] = {};
            std::vector<data_share> given = row_of(code, (rank - 1) % tree.width, handed_down[parent]);
            const std::size_t kept = best_kept(code, plans, tree.layer(rank), size_of(given)).kept;
            keep(kept, given);
            handed_down.push_back(std::move(given));
        }
    }

    topology::regular_tree tree() const { return tree_; }
    std::size_t points() const { return points_; }

    /// What a rank computes on: ascending within each part that it got from its parent; nothing for the root.
    std::span<const data_share> shares_of(rank_t rank) const {
        RILL_EXPECTS(0 <= rank && rank < tree_.size(), "coded_allocation: no such rank");
        const auto r = static_cast<std::size_t>(rank);
        return std::span(shares_).subspan(starts_[r], starts_[r + 1] - starts_[r]);
    }
    /// How many points a rank computes on.
    std::size_t load_of(rank_t rank) const { return size_of(shares_of(rank)); }
    /// The part r of the data that each worker computes on if all sizes divide: 1 / Σ over the layers l of (k/m)^l,
    /// where k is the number of partitions of the code and m the number in its longest row. For the codes of least
    /// load, k/m is n/(s+1).
    double ideal_part() const {
        double sum = 0, power = 1;
        for (int layer = 0; layer < tree_.depth; ++layer) sum += power /= row_part_;
        return 1 / sum;
    }
    double ideal_load() const { return ideal_part() * static_cast<double>(points_); }

    /// The largest distance from 1 of any point's coefficient in what the root decodes, if the messages of the `lost`
    /// ranks do not reach their parents. For each parent, the children that are not lost must leave the code decodable.
    ///
    /// Cost: O(points + all shares).
    template <GradientCode Code>
    double coverage_error(const Code& code, std::span<const rank_t> lost = {}) const {
        const int size = tree_.size();
        std::vector<double> weights(static_cast<std::size_t>(size));  // of each rank's message in the root's sum
        std::vector<double> steps(points_ + 1);                       // changes of the coefficient from point to point
        weights[0] = 1;
        std::vector<int> left;
        std::vector<double> row;
        for (rank_t rank = 0; rank < size; ++rank) {
            const double weight = weights[static_cast<std::size_t>(rank)];
            for (const data_share& share : shares_of(rank)) {
                steps[share.first] += weight * share.coefficient;
                steps[share.last] -= weight * share.coefficient;
            }
            if (weight == 0 || tree_.children(size, rank) == 0) continue;
            left.clear();
            for (int i = 0; i < tree_.width; ++i)
                if (std::find(lost.begin(), lost.end(), tree_.child(size, rank, i)) == lost.end()) left.push_back(i);
            row.resize(left.size());
            code.decoding_row(left, row);
            for (std::size_t i = 0; i < left.size(); ++i)
                weights[static_cast<std::size_t>(tree_.child(size, rank, left[i]))] = weight * row[i];
        }
        double coefficient = 0, farthest = 0;
        for (std::size_t point = 0; point < points_; ++point)
            farthest = std::max(farthest, std::abs((coefficient += steps[point]) - 1));
        return farthest;
    }

  private:
    struct decision {
        std::size_t given = 0;  ///< points that a node gets
        std::size_t kept = 0;   ///< points that it keeps
        double farthest = 0;    ///< largest distance from the ideal load in its subtree
    };
    using share_plan = std::vector<decision>;  // of one layer: one for each number of points that its nodes get

    static std::size_t size_of(std::span<const data_share> shares) {
        std::size_t size = 0;
        for (const data_share& share : shares) size += share.count();
        return size;
    }

    /// The first point of a partition if this many points are cut into `partitions`.
    static std::size_t cut(std::size_t points, int partition, int partitions) {
        const auto k = static_cast<std::size_t>(partitions), p = static_cast<std::size_t>(partition);
        return points / k * p + points % k * p / k;
    }

    template <class Code>
    void longest_row(const Code& code) {
        std::size_t longest = 0;
        for (int child = 0; child < code.workers(); ++child)
            longest = std::max(longest, code.partitions_of(child).size());
        row_part_ = static_cast<double>(longest) / code.partitions();
    }

    static void append(std::vector<data_share>& shares, const data_share& more) {
        if (more.first == more.last) return;
        if (!shares.empty() && shares.back().last == more.first && shares.back().coefficient == more.coefficient)
            shares.back().last = more.last;
        else
            shares.push_back(more);
    }

    /// CompAlloc: what one child gets of the points of its parent.
    template <class Code>
    static std::vector<data_share> row_of(const Code& code, int child, const std::vector<data_share>& all) {
        std::vector<data_share> given;
        const std::size_t points = size_of(all);
        for (std::size_t j = 0; j < code.partitions_of(child).size(); ++j) {
            const int partition = code.partitions_of(child)[j];
            const std::size_t first = cut(points, partition, code.partitions());
            const std::size_t last = cut(points, partition + 1, code.partitions());
            std::size_t before = 0;
            for (const data_share& share : all) {
                const std::size_t from = std::max(first, before), to = std::min(last, before + share.count());
                if (from < to)
                    append(given, {share.first + (from - before), share.first + (to - before),
                                   share.coefficient * code.coefficients_of(child)[j]});
                before += share.count();
            }
        }
        return given;
    }

    /// Moves the first `count` points of `given` to the shares of the next rank.
    void keep(std::size_t count, std::vector<data_share>& given) {
        std::size_t whole = 0;
        for (; whole < given.size() && given[whole].count() <= count; ++whole) {
            count -= given[whole].count();
            shares_.push_back(given[whole]);
        }
        given.erase(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(whole));
        if (count > 0) {
            shares_.push_back({given[0].first, given[0].first + count, given[0].coefficient});
            given[0].first += count;
        }
        starts_.push_back(shares_.size());
    }

    template <class Code>
    decision best_kept(const Code& code, std::vector<share_plan>& plans, int layer, std::size_t given) const {
        share_plan& plan = plans[static_cast<std::size_t>(layer)];
        for (const decision& known : plan)
            if (known.given == given) return known;
        const double ideal = ideal_load();
        decision best{given, given, std::abs(static_cast<double>(given) - ideal)};
        if (layer < tree_.depth) {
            best.farthest = std::numeric_limits<double>::infinity();
            const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(ideal) - 1));
            for (std::size_t kept = std::min(low, given); kept <= std::min(low + 3, given); ++kept) {
                double farthest = std::abs(static_cast<double>(kept) - ideal);
                for (int child = 0; child < code.workers(); ++child) {
                    std::size_t below = 0;
                    for (const int partition : code.partitions_of(child))
                        below += cut(given - kept, partition + 1, code.partitions()) -
                                 cut(given - kept, partition, code.partitions());
                    farthest = std::max(farthest, best_kept(code, plans, layer + 1, below).farthest);
                }
                if (farthest < best.farthest) best = {given, kept, farthest};
            }
        }
        plans[static_cast<std::size_t>(layer)].push_back(best);
        return best;
    }

    topology::regular_tree tree_;
    std::size_t points_;
    double row_part_ = 1;              // the part of a parent's points that a child's subtree gets
    std::vector<data_share> shares_;   // of all ranks, one after the other
    std::vector<std::size_t> starts_;  // where the shares of each rank begin, and where the last ones end
};

/// A line for each worker: "rank 4, layer 2, child of 1: 4 points: 0.25*[4, 6) + 0.5*[6, 8)".
inline std::string to_string(const coded_allocation& allocation) {
    const topology::regular_tree tree = allocation.tree();
    std::string text;
    for (rank_t rank = 1; rank < tree.size(); ++rank) {
        text += "rank " + std::to_string(rank) + ", layer " + std::to_string(tree.layer(rank)) + ", child of " +
                std::to_string(tree.parent(tree.size(), rank)) + ": " + std::to_string(allocation.load_of(rank)) +
                " points";
        const char* separator = ": ";
        for (const data_share& share : allocation.shares_of(rank)) {
            char line[96];
            std::snprintf(line, sizeof line, "%s%.9g*[%zu, %zu)", separator, share.coefficient, share.first,
                          share.last);
            text += line;
            separator = " + ";
        }
        text += '\n';
    }
    return text;
}

}}  // namespace rill::RILL_ABI
