// Runs a sound table on expressions instead of numbers. The results show which operands were folded in which order.
#pragma once

#include "table.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace topology_test {

struct expressions {
    std::vector<std::vector<std::string>> values{};  // [rank][part]; empty where the rank has no value
    std::vector<std::set<int>> known{};              // [rank]: the ranks that it has heard of
    /// (from, to, content) of every message, sorted, without its round.
    std::vector<std::tuple<int, int, std::string>> said{};

    friend bool operator==(const expressions&, const expressions&) = default;
};

inline std::string folded(const std::string& left, const std::string& right) {
    if (left.empty()) return right;
    return right.empty() ? left : "(" + left + " " + right + ")";
}

/// The value of `rank` in `part` after a round.
inline std::string applied(const expressions& before, const table_round& round, int rank, int part) {
    const auto value = [&](int r) {
        return before.values[static_cast<std::size_t>(r)][static_cast<std::size_t>(part)];
    };
    std::string result;
    bool own_is_in = false;
    for (const rill::transfer& r : round.receives) {
        if (!r.parts.contains(part)) continue;
        if (round.kind == rill::action::copy) return value(r.peer);
        if (r.peer > rank && !std::exchange(own_is_in, true)) result = folded(result, value(rank));
        result = folded(result, value(r.peer));
    }
    return own_is_in ? result : folded(result, value(rank));
}

/// Runs a table as the executor does: all sends first, then a left fold in ascending order of ranks that includes the
/// rank's own value at its place.
inline expressions run_on_expressions(const table& t, const expressions& start, int rounds) {
    expressions now = start;
    for (int k = 0; k < rounds; ++k) {
        const expressions before = now;
        for (int rank = 0; rank < t.size(); ++rank) {
            const auto here = static_cast<std::size_t>(rank);
            const table_round& round = t.at(rank, k);
            for (int part = 0; part < t.parts; ++part)
                now.values[here][static_cast<std::size_t>(part)] = applied(before, round, rank, part);
            for (const rill::transfer& r : round.receives) {
                const auto peer = static_cast<std::size_t>(r.peer);
                std::string content = std::to_string(r.parts.first) + "-" + std::to_string(r.parts.last) + ":";
                for (int part = r.parts.first; part < r.parts.last; ++part)
                    content += before.values[peer][static_cast<std::size_t>(part)] + ";";
                for (int cause : before.known[peer]) content += "<" + std::to_string(cause);
                now.said.emplace_back(r.peer, rank, content);
                now.known[here].insert(before.known[peer].begin(), before.known[peer].end());
            }
        }
    }
    std::sort(now.said.begin(), now.said.end());
    return now;
}

inline expressions run_on_expressions(const table& t, const expressions& start) {
    return run_on_expressions(t, start, t.rounds());
}

/// Whether what `from` knows after `round` rounds reaches `to`.
inline bool reaches(const table& t, int from, int round, int to) {
    std::set<int> informed{from};
    for (int k = round; k < t.rounds(); ++k) {
        const std::set<int> before = informed;
        for (int rank = 0; rank < t.size(); ++rank)
            for (const rill::transfer& r : t.at(rank, k).receives)
                if (before.contains(r.peer)) informed.insert(rank);
    }
    return informed.contains(to);
}

/// The start of a reduction: each rank has its own number in each part.
inline expressions all_contribute(int size, int parts) {
    expressions start;
    for (int rank = 0; rank < size; ++rank) {
        start.values.emplace_back(static_cast<std::size_t>(parts), std::to_string(rank));
        start.known.push_back({rank});
    }
    return start;
}

/// The contributions of an expression in order: its text without parentheses.
inline std::string order_of(const std::string& expression) {
    std::string flat;
    for (char c : expression)
        if (c != '(' && c != ')') flat += c;
    return flat;
}

inline std::string ascending(int size) {
    std::string all;
    for (int rank = 0; rank < size; ++rank) all += (rank == 0 ? "" : " ") + std::to_string(rank);
    return all;
}

}  // namespace topology_test
