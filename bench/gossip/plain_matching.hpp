// Matchings over fast links (SAPS-PSGD, algorithm 3) as a sequential program that shares no code with rill.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace gossip_bench::plain {

using matrix = std::vector<std::vector<double>>;

/// A largest matching in a graph, by Edmonds' blossoms: O(V³).
class blossoms {
  public:
    explicit blossoms(const std::vector<std::vector<int>>& neighbours)
        : neighbours_(neighbours), match_(neighbours.size(), -1) {}

    /// Each vertex's partner, or -1.
    std::vector<int> matched() {
        for (int v = 0; v < size(); ++v)
            if (of(match_, v) < 0) augment(v);
        return match_;
    }

  private:
    int size() const { return static_cast<int>(neighbours_.size()); }
    static int& of(std::vector<int>& list, int v) { return list[static_cast<std::size_t>(v)]; }

    int common_base(int a, int b) {
        std::vector<bool> seen(match_.size());
        while (true) {
            a = of(base_, a);
            seen[static_cast<std::size_t>(a)] = true;
            if (of(match_, a) < 0) break;
            a = of(parent_, of(match_, a));
        }
        while (!seen[static_cast<std::size_t>(of(base_, b))]) b = of(parent_, of(match_, of(base_, b)));
        return of(base_, b);
    }
    void mark(std::vector<int>& in_blossom, int v, int base, int child) {
        for (; of(base_, v) != base; v = of(parent_, of(match_, v))) {
            of(in_blossom, of(base_, v)) = of(in_blossom, of(base_, of(match_, v))) = 1;
            of(parent_, v) = child;
            child = of(match_, v);
        }
    }
    void contract(int a, int b, std::vector<int>& queue, std::vector<int>& used) {
        const int base = common_base(a, b);
        std::vector<int> in_blossom(match_.size());
        mark(in_blossom, a, base, b);
        mark(in_blossom, b, base, a);
        for (int v = 0; v < size(); ++v) {
            if (of(in_blossom, of(base_, v)) == 0) continue;
            of(base_, v) = base;
            if (std::exchange(of(used, v), 1) == 0) queue.push_back(v);
        }
    }
    void augment(int root) {
        std::vector<int> used(match_.size()), queue{root};
        parent_.assign(match_.size(), -1);
        base_.resize(match_.size());
        std::iota(base_.begin(), base_.end(), 0);
        of(used, root) = 1;
        for (std::size_t next = 0; next < queue.size(); ++next) {
            const int v = queue[next];
            for (const int to : neighbours_[static_cast<std::size_t>(v)]) {
                if (of(base_, v) == of(base_, to) || of(match_, v) == to) continue;
                if (to == root || (of(match_, to) >= 0 && of(parent_, of(match_, to)) >= 0)) {
                    contract(v, to, queue, used);
                } else if (of(parent_, to) < 0) {
                    of(parent_, to) = v;
                    if (of(match_, to) < 0) return flip(to);
                    of(used, of(match_, to)) = 1;
                    queue.push_back(of(match_, to));
                }
            }
        }
    }
    void flip(int v) {
        while (v >= 0) {
            const int before = of(parent_, v), next = of(match_, before);
            of(match_, v) = before;
            of(match_, before) = v;
            v = next;
        }
    }

    const std::vector<std::vector<int>>& neighbours_;
    std::vector<int> match_, parent_{}, base_{};
};

/// The components of a graph: the number of the component of each vertex.
template <class Joined>
std::vector<int> components(int size, Joined&& joined) {
    std::vector<int> of(static_cast<std::size_t>(size));
    std::iota(of.begin(), of.end(), 0);
    for (int a = 0; a < size; ++a)
        for (int b = 0; b < a; ++b)
            if (joined(a, b)) {
                const int from = of[static_cast<std::size_t>(a)], to = of[static_cast<std::size_t>(b)];
                std::replace(of.begin(), of.end(), from, to);
            }
    return of;
}
inline bool are_joined(const std::vector<int>& parts) {
    return std::all_of(parts.begin(), parts.end(), [&](int part) { return part == parts[0]; });
}

/// Algorithm 3 for an even number of ranks.
class bandwidth_matching {
  public:
    bandwidth_matching(const matrix& speeds, double least, int window, bool fastest_bridges, unsigned seed)
        : speeds_(speeds),
          least_(least),
          window_(window),
          fastest_bridges_(fastest_bridges),
          random_(seed),
          met_(speeds.size(), std::vector<double>(speeds.size(), -1e9)) {}

    std::vector<int> next() {
        std::vector<int> partner(speeds_.size(), -1);
        const auto parts = components(size(), [&](int a, int b) { return met_lately(a, b); });
        if (!are_joined(parts)) {
            const double slowest = fastest_bridges_ ? slowest_bridge(parts) : 0;
            match(partner, [&](int a, int b) { return part(parts, a) != part(parts, b) && speed(a, b) >= slowest; });
        }
        if (fastest_bridges_ || are_joined(parts)) match(partner, [&](int a, int b) { return speed(a, b) >= least_; });
        match(partner, [](int, int) { return true; });
        for (int a = 0; a < size(); ++a) met_[at(a)][at(partner[at(a)])] = round_;
        ++round_;
        return partner;
    }

  private:
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
    static int part(const std::vector<int>& parts, int v) { return parts[at(v)]; }
    int size() const { return static_cast<int>(speeds_.size()); }
    double speed(int a, int b) const { return speeds_[at(a)][at(b)]; }
    bool met_lately(int a, int b) const { return met_[at(a)][at(b)] > round_ - window_; }

    /// Of the links that join all components, as fast as possible, the slowest.
    double slowest_bridge(std::vector<int> parts) const {
        std::vector<std::pair<double, std::array<int, 2>>> links;
        for (int a = 0; a < size(); ++a)
            for (int b = 0; b < a; ++b) links.push_back({speed(a, b), {a, b}});
        std::sort(links.rbegin(), links.rend());
        for (const auto& [how_fast, ends] : links) {
            std::replace(parts.begin(), parts.end(), parts[at(ends[0])], parts[at(ends[1])]);
            if (are_joined(parts)) return how_fast;
        }
        return 0;
    }

    /// Matches those that are left over, as many as can be, and which ones at random.
    template <class Allowed>
    void match(std::vector<int>& partner, Allowed&& allowed) {
        std::vector<int> left;
        for (int v = 0; v < size(); ++v)
            if (partner[at(v)] < 0) left.push_back(v);
        std::shuffle(left.begin(), left.end(), random_);
        std::vector<std::vector<int>> neighbours(left.size());
        for (std::size_t i = 0; i < left.size(); ++i) {
            for (std::size_t j = 0; j < left.size(); ++j)
                if (i != j && allowed(left[i], left[j])) neighbours[i].push_back(static_cast<int>(j));
            std::shuffle(neighbours[i].begin(), neighbours[i].end(), random_);
        }
        const std::vector<int> found = blossoms(neighbours).matched();
        for (std::size_t i = 0; i < left.size(); ++i)
            if (found[i] >= 0) partner[at(left[i])] = left[at(found[i])];
    }

    const matrix& speeds_;
    double least_;
    int window_;
    bool fastest_bridges_;
    std::mt19937_64 random_;
    matrix met_;
    double round_ = 0;
};

}  // namespace gossip_bench::plain
