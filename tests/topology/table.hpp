// A schedule of all ranks as a table, so that tests can change it.
#pragma once

#include <rill/concept/topology.hpp>

#include <cstddef>
#include <vector>

namespace topology_test {

struct table_round {
    rill::action kind = rill::action::fold;
    std::vector<rill::transfer> sends{};
    std::vector<rill::transfer> receives{};

    friend bool operator==(const table_round&, const table_round&) = default;
};

/// `ranks[r][round]`.
struct table {
    int parts = 1;
    std::vector<std::vector<table_round>> ranks{};

    int size() const { return static_cast<int>(ranks.size()); }
    int rounds() const { return static_cast<int>(ranks[0].size()); }
    table_round& at(int rank, int round) {
        return ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)];
    }
    const table_round& at(int rank, int round) const {
        return ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)];
    }
    friend bool operator==(const table&, const table&) = default;
};

/// One rank's schedule as a view of a table, which must outlive it.
struct table_schedule {
    const table* all = nullptr;
    int rank = 0;

    int parts() const { return all->parts; }
    int rounds() const { return static_cast<int>(all->ranks[static_cast<std::size_t>(rank)].size()); }
    rill::action kind(int round) const { return all->at(rank, round).kind; }
    int sends(int round) const { return static_cast<int>(all->at(rank, round).sends.size()); }
    rill::transfer send(int round, int i) const { return all->at(rank, round).sends[static_cast<std::size_t>(i)]; }
    int receives(int round) const { return static_cast<int>(all->at(rank, round).receives.size()); }
    rill::transfer receive(int round, int i) const {
        return all->at(rank, round).receives[static_cast<std::size_t>(i)];
    }
    friend bool operator==(const table_schedule&, const table_schedule&) = default;
};
static_assert(rill::Schedule<table_schedule>);

inline auto views(const table& t) {
    return [&t](int rank) { return table_schedule{&t, rank}; };
}

template <class ScheduleOf>
table written_down(const ScheduleOf& schedule_of, int size) {
    table result{schedule_of(0).parts(), {}};
    for (int rank = 0; rank < size; ++rank) {
        const auto s = schedule_of(rank);
        auto& rounds = result.ranks.emplace_back();
        for (int k = 0; k < s.rounds(); ++k) {
            table_round& round = rounds.emplace_back();
            round.kind = s.kind(k);
            for (int i = 0; i < s.sends(k); ++i) round.sends.push_back(s.send(k, i));
            for (int i = 0; i < s.receives(k); ++i) round.receives.push_back(s.receive(k, i));
        }
    }
    return result;
}

}  // namespace topology_test
