// The proof must refuse every change of one transfer of a shipped schedule, unless the change makes another schedule
// that an independent execution finds correct (see `judge`).
#include "../support/sanitized.hpp"
#include "expressions.hpp"
#include "table.hpp"

#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

/// A message of a table: send `send` of rank `from` and receive `receive` of rank `to` in `round`.
struct sent {
    int round, from, to, send, receive;
};

enum ends { sender = 1, receiver = 2, both = 3 };

std::vector<sent> messages_of(const table& t) {
    std::vector<sent> all;
    for (int k = 0; k < t.rounds(); ++k)
        for (int to = 0; to < t.size(); ++to) {
            const auto& receives = t.at(to, k).receives;
            for (int i = 0; i < static_cast<int>(receives.size()); ++i) {
                const transfer r = receives[static_cast<std::size_t>(i)];
                const auto& sends = t.at(r.peer, k).sends;
                const auto found = std::find(sends.begin(), sends.end(), transfer{to, r.parts});
                all.push_back({k, r.peer, to, static_cast<int>(found - sends.begin()), i});
            }
        }
    return all;
}

void erase(std::vector<transfer>& list, int i) { list.erase(list.begin() + i); }
void insert_receive(std::vector<transfer>& list, transfer t) {
    const auto later = [](transfer a, transfer b) { return a.peer < b.peer; };
    list.insert(std::upper_bound(list.begin(), list.end(), t, later), t);
}

/// Applies all mutations of one schedule and counts what the proof says.
class mutator {
  public:
    mutator(const obligation& aim, const table& shipped, const expressions& start)
        : aim_(aim), shipped_(shipped), start_(start), meaning_(run_on_expressions(shipped, start)) {}

    void run() {
        const auto all = messages_of(shipped_);
        for (const sent& m : all) {
            for (ends e : {sender, receiver, both}) {
                drop(m, e);
                duplicate(m, e);
                for (int step : {-1, 1}) {
                    move(m, e, m.round + step);
                    change_parts(m, e, step, 0);
                    change_parts(m, e, 0, step);
                    change_parts(m, e, step, step);
                }
                for (int peer = 0; peer < aim_.size; ++peer) retarget(m, e, peer);
            }
            for (const sent& other : all)
                if (m.round < other.round) swap(m, other);
        }
    }

    int tried() const { return tried_; }
    int retimed() const { return retimed_; }
    int rerouted() const { return rerouted_; }

  private:
    const transfer& send_of(const sent& m) const {
        return shipped_.at(m.from, m.round).sends[static_cast<std::size_t>(m.send)];
    }
    const transfer& receive_of(const sent& m) const {
        return shipped_.at(m.to, m.round).receives[static_cast<std::size_t>(m.receive)];
    }

    void drop(const sent& m, ends e) {
        table t = shipped_;
        if ((e & sender) != 0) erase(t.at(m.from, m.round).sends, m.send);
        if ((e & receiver) != 0) erase(t.at(m.to, m.round).receives, m.receive);
        judge(t, "drop", m, e);
    }
    void duplicate(const sent& m, ends e) {
        table t = shipped_;
        if ((e & sender) != 0) t.at(m.from, m.round).sends.push_back(send_of(m));
        if ((e & receiver) != 0) insert_receive(t.at(m.to, m.round).receives, receive_of(m));
        judge(t, "duplicate", m, e);
    }
    void move(const sent& m, ends e, int round) {
        if (round < 0 || round >= shipped_.rounds()) return;
        table t = shipped_;
        if ((e & sender) != 0) {
            erase(t.at(m.from, m.round).sends, m.send);
            t.at(m.from, round).sends.push_back(send_of(m));
        }
        if ((e & receiver) != 0) {
            erase(t.at(m.to, m.round).receives, m.receive);
            insert_receive(t.at(m.to, round).receives, receive_of(m));
        }
        judge(t, "move", m, e);
    }
    void change_parts(const sent& m, ends e, int first, int last) {
        table t = shipped_;
        const auto change = [&](std::vector<transfer>& list, int i) {
            list[static_cast<std::size_t>(i)].parts.first += first;
            list[static_cast<std::size_t>(i)].parts.last += last;
        };
        if ((e & sender) != 0) change(t.at(m.from, m.round).sends, m.send);
        if ((e & receiver) != 0) change(t.at(m.to, m.round).receives, m.receive);
        judge(t, "parts", m, e);
    }
    /// Gives the sender another receiver, or the receiver another sender, or moves the whole message.
    void retarget(const sent& m, ends e, int peer) {
        const auto redirect_send = [&](table& t) {
            t.at(m.from, m.round).sends[static_cast<std::size_t>(m.send)].peer = peer;
        };
        const auto redirect_receive = [&](table& t, int to, int from) {
            erase(t.at(m.to, m.round).receives, m.receive);
            insert_receive(t.at(to, m.round).receives, {from, receive_of(m).parts});
        };
        table t = shipped_;
        if ((e & sender) != 0) redirect_send(t);
        if (e == receiver) redirect_receive(t, m.to, peer);
        if (e == both) redirect_receive(t, peer, m.from);
        judge(t, "retarget", m, e);
        if (e != both || peer == m.from) return;
        t = shipped_;
        erase(t.at(m.from, m.round).sends, m.send);
        t.at(peer, m.round).sends.push_back(send_of(m));
        redirect_receive(t, m.to, peer);
        judge(t, "resource", m, e);
    }
    void swap(const sent& a, const sent& b) {
        table t = shipped_;
        swap_sends(t, a, b);
        if (a.from == b.from) judge(t, "swap", a, sender);
        swap_receives(t, a, b);
        judge(t, "swap", a, both);
        if (a.to != b.to) return;
        t = shipped_;
        swap_receives(t, a, b);
        judge(t, "swap", a, receiver);
    }
    void swap_sends(table& t, const sent& a, const sent& b) const {
        erase(t.at(a.from, a.round).sends, a.send);
        erase(t.at(b.from, b.round).sends, b.send);
        auto& first = t.at(b.from, a.round).sends;
        first.insert(first.begin() + std::min<long>(a.send, static_cast<long>(first.size())), send_of(b));
        auto& second = t.at(a.from, b.round).sends;
        second.insert(second.begin() + std::min<long>(b.send, static_cast<long>(second.size())), send_of(a));
    }
    void swap_receives(table& t, const sent& a, const sent& b) const {
        erase(t.at(a.to, a.round).receives, a.receive);
        erase(t.at(b.to, b.round).receives, b.receive);
        insert_receive(t.at(b.to, a.round).receives, receive_of(b));
        insert_receive(t.at(a.to, b.round).receives, receive_of(a));
    }

    /// A change of one end, a lost message and a doubled message must always be refused. Moving a whole message to
    /// another round or route, or changing its parts, may make another correct schedule. It is accepted only if
    /// - every message has the same content, and every rank ends with the same expressions (another round), or
    /// - executing it on expressions gives every rank every contribution exactly once, in order where that is promised,
    /// and all ranks learn the outcome (another route or other parts).
    void judge(const table& mutant, const char* kind, const sent& m, ends e) {
        if (mutant == shipped_) return;
        ++tried_;
        if (!verify(aim_, views(mutant))) return;
        const std::string name = kind;
        if (e == both && name != "drop" && name != "duplicate") {
            const expressions result = run_on_expressions(mutant, start_);
            if (result == meaning_) {
                ++retimed_;
                return;
            }
            if (is_right(result) && tells_all(mutant)) {
                ++rerouted_;
                return;
            }
        }
        FAIL_CHECK("accepted: " << name << " " << e << " of " << m.from << "->" << m.to << " in round " << m.round
                                << ", " << std::string(rill::name(aim_.what)) << ", P = " << aim_.size << ", root "
                                << aim_.root);
    }
    bool is_right(const expressions& result) const {
        for (int rank = 0; rank < aim_.size; ++rank)
            for (int part = 0; part < shipped_.parts; ++part) {
                if (aim_.what == operation::reduce_scatter && rank != part) continue;
                if (aim_.what == operation::reduce && rank != aim_.root) continue;
                if (!is_whole(result, rank, part)) return false;
            }
        return true;
    }
    bool is_whole(const expressions& result, int rank, int part) const {
        std::string order = order_of(result.values[static_cast<std::size_t>(rank)][static_cast<std::size_t>(part)]);
        if (aim_.what == operation::all_gather) return order == std::to_string(part);
        if (aim_.what == operation::broadcast) return order == std::to_string(aim_.root);
        std::string wanted = ascending(aim_.size);
        if (!aim_.promised.rank_order) {  // one digit per rank
            std::sort(order.begin(), order.end());
            std::sort(wanted.begin(), wanted.end());
        }
        return order == wanted;
    }
    int finished_after(const table& t, int rank) const {
        int rounds = 0;
        while (!is_whole(run_on_expressions(t, start_, rounds), rank, 0)) ++rounds;
        return rounds;
    }
    bool tells_all(const table& t) const {
        for (int rank = 0; rank < aim_.size; ++rank) {
            if (aim_.what == operation::reduce && !reaches(t, aim_.root, finished_after(t, aim_.root), rank))
                return false;
            if (aim_.what != operation::broadcast) continue;
            for (int other = 0; other < aim_.size; ++other)
                if (!reaches(t, rank, 0, other)) return false;
        }
        return true;
    }

    obligation aim_;
    table shipped_;
    expressions start_;
    expressions meaning_;
    int tried_ = 0;
    int retimed_ = 0;
    int rerouted_ = 0;
};

/// The start of an operation that folds nothing: only the root has values, or each rank has its own part.
expressions start_of(const obligation& aim, int parts) {
    expressions start = all_contribute(aim.size, parts);
    for (int rank = 0; rank < aim.size; ++rank)
        for (int part = 0; part < parts; ++part) {
            const bool mine = aim.what == operation::broadcast ? rank == aim.root : rank == part;
            const bool folds = aim.what != operation::broadcast && aim.what != operation::all_gather;
            if (!folds && !mine) start.values[static_cast<std::size_t>(rank)][static_cast<std::size_t>(part)].clear();
        }
    return start;
}

struct count {
    int tried = 0;
    int retimed = 0;
    int rerouted = 0;
};

template <class ScheduleOf>
void mutate(count& sum, const obligation& aim, const ScheduleOf& schedule_of) {
    const table shipped = written_down(schedule_of, aim.size);
    REQUIRE(verify(aim, views(shipped)));
    mutator m(aim, shipped, start_of(aim, shipped.parts));
    m.run();
    sum.tried += m.tried();
    sum.retimed += m.retimed();
    sum.rerouted += m.rerouted();
}

#ifdef RILL_TEST_SANITIZED  // more ranks take the same memory paths
constexpr int most_ranks = 6;
#else
constexpr int most_ranks = 8;
#endif

/// Whether so many mutations were tried as there are of up to 8 ranks.
bool are_many(const count& sum, int least) { return most_ranks < 8 || sum.tried > least; }

template <Topology T>
count mutate_all(const T& topology) {
    count sum;
    for (int size = 2; size <= most_ranks; ++size) {
        mutate(sum, {operation::all_reduce, size, 0, promises_of(topology)},
               [&](int rank) { return topology.all_reduce(size, rank); });
        mutate(sum, {operation::reduce_scatter, size, 0, {.rank_order = T::preserves_rank_order}},
               [&](int rank) { return topology.reduce_scatter(size, rank); });
        mutate(sum, {operation::all_gather, size}, [&](int rank) { return topology.all_gather(size, rank); });
        if constexpr (TreeTopology<T>)
            for (int root = 0; root < size; ++root) {
                mutate(sum, {operation::reduce, size, root, {.rank_order = T::preserves_rank_order}},
                       [&](int rank) { return topology.reduce(size, rank, root); });
                mutate(sum, {operation::broadcast, size, root},
                       [&](int rank) { return topology.broadcast(size, rank, root); });
            }
    }
    return sum;
}

}  // namespace

TEST_CASE("every one-transfer mutation is refused: ring") {
    const count sum = mutate_all(ring{});
    CHECK(are_many(sum, 50'000));
    CHECK(sum.retimed == 0);  // no rank ever waits, so that no change of rounds is correct
}
TEST_CASE("every one-transfer mutation is refused: split_allgather") {
    const count sum = mutate_all(split_allgather{});
    CHECK(are_many(sum, 30'000));
    CHECK(sum.retimed + sum.rerouted == 0);
}
TEST_CASE("every one-transfer mutation is refused: star") { CHECK(mutate_all(star{}).retimed == 0); }
TEST_CASE("every one-transfer mutation is refused: tree") {
    for (int arity : {1, 2, 3}) CHECK(are_many(mutate_all(tree{arity}), 30'000));
}
TEST_CASE("every one-transfer mutation is refused: recursive_doubling") {
    CHECK(are_many(mutate_all(recursive_doubling{}), 10'000));
}
TEST_CASE("every one-transfer mutation is refused: halving_doubling") {
    CHECK(are_many(mutate_all(halving_doubling{}), 10'000));
}
