// The machines of small trees, explored: every order in which their messages can arrive, with links cut at any point.
#include <rill/collective/detail/delivery_machine.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/backup_tree.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::rank_t;
using rill::detail::delivery_kind;
using rill::detail::delivery_note;
using rill::topology::backup_tree;

namespace {

using machine = rill::detail::delivery_machine<backup_tree>;

/// How often each rank's contribution is in a sum: four bits for each.
using sum = std::uint64_t;
constexpr sum own(rank_t rank) { return sum{1} << 4 * static_cast<unsigned>(rank); }

/// What a rank does once an operation is over for it.
enum class afterwards : unsigned char { enters_next, is_gone };
/// How a link is cut.
enum class way : unsigned char { both, up, down };

struct message {
    delivery_note note{};
    sum content = 0;
};

struct member {
    machine at;
    std::vector<sum> contents{};  ///< by handle
    sum up = 0, result = 0;
    int children_heard = 0;
    bool is_over = false;
};

struct world {
    std::vector<member> members;
    std::vector<std::vector<message>> links;  ///< by sender, then receiver
    std::vector<char> is_cut;                 ///< in the same order
    std::vector<std::size_t> order{};         ///< the links of all messages under way, in the order sent
    rill::time_point now{};
    int cuts = 0, early_timeouts = 0;
};

class trees {
  public:
    trees(int size, backup_tree shape, afterwards then) : size_(size), shape_(shape), then_(then) {}

    world first() const {
        world begun;
        const auto size = static_cast<std::size_t>(size_);
        begun.links.resize(size * size);
        begun.is_cut.resize(size * size);
        for (rank_t rank = 0; rank < size_; ++rank) begun.members.push_back({.at = {shape_, size_, rank}});
        for (rank_t rank = 0; rank < size_; ++rank) {
            member& self = of(begun, rank);
            self.at.begin(1, begun.now);
            self.up = own(rank);
            if (shape_.children(size_, rank) == 0) send_up(begun, rank);
        }
        return begun;
    }

    static member& of(world& in, rank_t rank) { return in.members[static_cast<std::size_t>(rank)]; }
    std::size_t link(rank_t from, rank_t to) const { return static_cast<std::size_t>(from * size_ + to); }
    int size() const { return size_; }

    void cut(world& in, rank_t one, rank_t other, way direction) const {
        ++in.cuts;
        if (direction != way::down) lose(in, link(one, other));
        if (direction != way::up) lose(in, link(other, one));
    }
    void deliver(world& in, std::size_t from_to) const {
        const auto to = static_cast<rank_t>(from_to % static_cast<std::size_t>(size_));
        const auto from = static_cast<rank_t>(from_to / static_cast<std::size_t>(size_));
        const message got = in.links[from_to].front();
        in.links[from_to].erase(in.links[from_to].begin());
        in.order.erase(std::find(in.order.begin(), in.order.end(), from_to));
        take(in, to, from, got);
    }
    /// The earliest time at which a rank acts by itself comes. Returns false where no rank will.
    bool pass_time(world& in) const {
        rank_t first = rill::no_rank;
        for (rank_t rank = 0; rank < size_; ++rank)
            if (!is_gone(in, rank) &&
                (first == rill::no_rank || of(in, rank).at.next_due() < of(in, first).at.next_due()))
                first = rank;
        if (first == rill::no_rank || of(in, first).at.next_due().ns > rill::seconds(1000).ns) return false;
        in.now = std::max(in.now, of(in, first).at.next_due());
        of(in, first).at.pass(in.now);
        flush(in, first);
        return true;
    }
    bool is_over(const world& in) const {
        return std::all_of(in.members.begin(), in.members.end(), [](const member& each) { return each.is_over; });
    }

    /// The first thing that is wrong at an end, or nothing.
    std::string judge(world& in) const {
        sum all = 0;
        for (rank_t rank = 0; rank < size_; ++rank) all += own(rank);
        for (rank_t rank = 0; rank < size_; ++rank) {
            if (of(in, rank).result != all) return "rank " + std::to_string(rank) + " has another sum";
            if (!of(in, rank).is_over && (then_ == afterwards::enters_next || in.cuts == 0))
                return "rank " + std::to_string(rank) + " is not told that the operation is over";
        }
        return "";
    }

    std::uint64_t hash(const world& in) const {
        std::uint64_t h = rill::mix64(static_cast<std::uint64_t>(in.now.ns), static_cast<std::uint64_t>(in.cuts),
                                      static_cast<std::uint64_t>(in.early_timeouts));
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        for (const member& each : in.members) {
            each.at.visit_state(mix);
            mix(each.up), mix(each.result), mix(each.children_heard), mix(each.is_over);
        }
        for (std::size_t i = 0; i < in.links.size(); ++i) {
            mix(in.is_cut[i]), mix(in.links[i].size());
            for (const message& each : in.links[i])
                mix(each.note.kind.number), mix(each.note.origin), mix(each.note.target), mix(each.note.sequence),
                    mix(each.note.number), mix(each.content);
        }
        return h;
    }

  private:
    bool is_gone(const world& in, rank_t rank) const {
        return then_ == afterwards::is_gone && in.members[static_cast<std::size_t>(rank)].is_over;
    }
    static void lose(world& in, std::size_t from_to) {
        in.is_cut[from_to] = 1;
        in.links[from_to].clear();
        in.order.erase(std::remove(in.order.begin(), in.order.end(), from_to), in.order.end());
    }
    void send(world& in, rank_t from, rank_t to, const message& sent) const {
        const std::size_t by = link(from, to);
        if (in.is_cut[by] != 0 || is_gone(in, to)) return;
        in.links[by].push_back(sent);
        in.order.push_back(by);
    }
    void flush(world& in, rank_t rank) const {
        member& self = of(in, rank);
        const auto letters = self.at.outbox();
        self.at.outbox().clear();
        for (const auto& each : letters)
            send(in, rank, each.to,
                 {each.note, each.note.kind == delivery_kind::data ? self.contents[each.handle] : sum{0}});
        if (self.at.is_over() && !self.is_over) {
            self.is_over = true;
            if (then_ == afterwards::is_gone) {
                for (rank_t other = 0; other < size_; ++other) {
                    const std::size_t to_self = link(other, rank);
                    in.links[to_self].clear();
                    in.order.erase(std::remove(in.order.begin(), in.order.end(), to_self), in.order.end());
                }
                return;
            }
            self.at.begin(2, in.now);
            flush(in, rank);
        }
    }
    void take(world& in, rank_t rank, rank_t from, const message& got) const {
        member& self = of(in, rank);
        switch (self.at.on(got.note, from, in.now)) {
            case machine::verdict::forward: send(in, rank, got.note.destination(), got); break;
            case machine::verdict::deliver: came(in, rank, got); break;
            case machine::verdict::look:
            case machine::verdict::later:
            case machine::verdict::done: break;
        }
        flush(in, rank);
    }
    void post(world& in, rank_t rank, rank_t to, sum content) const {
        member& self = of(in, rank);
        self.contents.push_back(content);
        self.at.post(to, self.contents.size() - 1, 100, in.now);
    }
    void send_up(world& in, rank_t rank) const {
        const rank_t parent = shape_.parent(size_, rank);
        if (parent == rill::no_rank) return send_down(in, rank, of(in, rank).up);
        post(in, rank, parent, of(in, rank).up);
        flush(in, rank);
    }
    void send_down(world& in, rank_t rank, sum result) const {
        of(in, rank).result += result;
        for (int i = 0; i < shape_.children(size_, rank); ++i) post(in, rank, shape_.child(size_, rank, i), result);
        of(in, rank).at.leave(in.now);
        flush(in, rank);
    }
    void came(world& in, rank_t rank, const message& got) const {
        if (got.note.origin == shape_.parent(size_, rank)) return send_down(in, rank, got.content);
        of(in, rank).up += got.content;
        if (++of(in, rank).children_heard == shape_.children(size_, rank)) send_up(in, rank);
    }

    int size_;
    backup_tree shape_;
    afterwards then_;
};

/// Follows all that can happen: each order of arrival, up to so many cuts, and one timeout that comes too early.
class explorer {
  public:
    explorer(const trees& of, int cuts, std::vector<way> ways) : of_(of), cuts_(cuts), ways_(std::move(ways)) {}

    std::string run() {
        push(of_.first());
        while (wrong_.empty() && !todo_.empty()) {
            world next = std::move(todo_.back());
            todo_.pop_back();
            expand(std::move(next));
        }
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }
    std::size_t ends() const { return ends_; }

  private:
    void push(world&& next) {
        if (seen_.insert(of_.hash(next)).second) todo_.push_back(std::move(next));
    }
    void expand(world at) {
        if (of_.is_over(at)) return finish(at);
        bool is_quiet = true;
        for (std::size_t link = 0; link < at.links.size(); ++link) {
            if (at.links[link].empty()) continue;
            is_quiet = false;
            world next = at;
            of_.deliver(next, link);
            push(std::move(next));
        }
        if (at.cuts < cuts_)
            for (rank_t one = 0; one < of_.size(); ++one)
                for (rank_t other = 0; other < one; ++other)
                    for (const way direction : ways_) {
                        if (at.is_cut[of_.link(one, other)] != 0 || at.is_cut[of_.link(other, one)] != 0) continue;
                        world next = at;
                        of_.cut(next, one, other, direction);
                        push(std::move(next));
                    }
        if (!is_quiet && at.early_timeouts > 0) return;
        if (!is_quiet) ++at.early_timeouts;
        if (at.now > rill::time_point{rill::seconds(60).ns}) return finish(at);
        if (of_.pass_time(at))
            push(std::move(at));
        else
            finish(at);
    }
    void finish(world& at) {
        ++ends_;
        if (wrong_.empty()) wrong_ = of_.judge(at);
    }

    trees of_;
    int cuts_;
    std::vector<way> ways_;
    std::string wrong_;
    std::vector<world> todo_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0;
};

struct planned_cut {
    int at_message = 0;
    rank_t one = 0, other = 1;
    way direction = way::both;
};

/// Delivers in the order sent, and cuts links at given messages. Returns how many were delivered.
int run_in_order(const trees& of, world& at, const std::vector<planned_cut>& plan) {
    int delivered = 0;
    for (;;) {
        for (const planned_cut& each : plan)
            if (each.at_message == delivered && at.is_cut[of.link(each.one, each.other)] == 0 &&
                at.is_cut[of.link(each.other, each.one)] == 0)
                of.cut(at, each.one, each.other, each.direction);
        if (of.is_over(at) || at.now > rill::time_point{rill::seconds(600).ns}) return delivered;
        if (at.order.empty()) {
            if (!of.pass_time(at)) return delivered;
            continue;
        }
        of.deliver(at, at.order.front());
        ++delivered;
    }
}

constexpr backup_tree shape{2, rill::detect::fixed(rill::milliseconds(100))};

}  // namespace

TEST_CASE("three ranks: every order of messages, with a link cut at any point") {
    for (const afterwards then : {afterwards::enters_next, afterwards::is_gone}) {
        explorer all(trees(3, shape, then), 1, {way::both, way::up, way::down});
        CHECK(all.run() == "");
        CHECK(all.ends() > 0);
        MESSAGE(all.states());
    }
}

TEST_CASE("seven ranks: one link cut at any message, one way or both") {
    for (const afterwards then : {afterwards::enters_next, afterwards::is_gone}) {
        const trees of(7, shape, then);
        world calm = of.first();
        const int most = run_in_order(of, calm, {});
        CHECK(of.judge(calm) == "");
        for (rank_t one = 0; one < 7; ++one)
            for (rank_t other = 0; other < one; ++other)
                for (const way direction : {way::both, way::up, way::down})
                    for (int at = 0; at <= most; ++at) {
                        world cut = of.first();
                        run_in_order(of, cut, {{at, one, other, direction}});
                        const std::string wrong = of.judge(cut);
                        if (!wrong.empty()) FAIL_CHECK(wrong << ": " << one << "-" << other << " at " << at);
                    }
    }
}

TEST_CASE("seven ranks: two links cut, each at any message") {
    const trees of(7, shape, afterwards::enters_next);
    world calm = of.first();
    const int most = run_in_order(of, calm, {});
    std::vector<std::pair<rank_t, rank_t>> links;
    for (rank_t one = 0; one < 7; ++one)
        for (rank_t other = 0; other < one; ++other)
            if (shape.is_tree_link(7, one, other) || shape.is_backup_link(7, one, other))
                links.emplace_back(one, other);
    for (std::size_t i = 0; i < links.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            for (int first = 0; first <= most; first += 2)
                for (int second = 0; second <= most; second += 5) {
                    world cut = of.first();
                    run_in_order(of, cut,
                                 {{first, links[i].first, links[i].second}, {second, links[j].first, links[j].second}});
                    const std::string wrong = of.judge(cut);
                    if (!wrong.empty())
                        FAIL_CHECK(wrong << ": links " << i << " at " << first << ", " << j << " at " << second);
                }
}

TEST_CASE("the root goes on though all its links in the tree are cut, and a rank with none left does not") {
    const trees of(7, shape, afterwards::enters_next);
    world both = of.first();
    run_in_order(of, both, {{3, 0, 1}, {5, 0, 4}});
    CHECK(of.judge(both) == "");
    world alone = of.first();
    std::vector<planned_cut> plan;
    for (rank_t other = 0; other < 6; ++other) plan.push_back({0, 6, other});
    run_in_order(of, alone, plan);
    CHECK(of.judge(alone) != "");
}

TEST_CASE("a rank is out of reach when this rank does not hear it, and neither does any other that this rank hears") {
    const rill::time_point now{};
    machine self({}, 4, 0);
    self.begin(1, now);
    const auto misses = [&](rank_t other, rank_t whom, std::uint64_t number = 1) {
        return self.on({delivery_kind::miss, other, 0, static_cast<std::uint32_t>(whom), number}, other, now);
    };
    CHECK(!self.is_out_of_reach(1, now));
    CHECK(self.outbox().empty());
    misses(2, 1), misses(3, 1);  // nobody has asked
    self.lose(1, true);
    CHECK(!self.is_out_of_reach(1, now));
    REQUIRE(self.outbox().size() == 2);  // it asks ranks 2 and 3
    CHECK(self.outbox()[0].note == delivery_note{delivery_kind::seek, 0, 2, 1, 1});
    CHECK(self.next_due() > now);
    misses(2, 1), misses(3, 2);
    CHECK(!self.is_out_of_reach(1, now));
    SUBCASE("all others have said so") {
        misses(3, 1);
        CHECK(self.is_out_of_reach(1, now));
        self.lose(1, false);
        CHECK(!self.is_out_of_reach(1, now));
    }
    SUBCASE("it waits for another rank now") {
        CHECK(!self.is_out_of_reach(2, now));
        CHECK(self.next_due() > now + rill::seconds(1000));  // it asks for nobody
    }
    SUBCASE("the others are not heard either") {
        self.lose(3, true);
        CHECK(self.is_out_of_reach(1, now));
    }
    SUBCASE("what was said in an earlier operation does not count") {
        self.begin(2, now);
        misses(3, 1);
        CHECK(!self.is_out_of_reach(1, now));
    }
}

TEST_CASE("a rank that is asked for another looks for it, and says so if it does not hear it") {
    machine self({}, 4, 2);
    self.begin(1, {});
    const delivery_note asked{delivery_kind::seek, 0, 2, 1, 1};
    CHECK(self.on(asked, 0, {}) == machine::verdict::look);
    self.lose(1, true);
    CHECK(self.on(asked, 0, {}) == machine::verdict::done);
    REQUIRE(self.outbox().size() == 1);
    CHECK(self.outbox()[0].note == delivery_note{delivery_kind::miss, 2, 0, 1, 1});
    CHECK(self.on({delivery_kind::seek, 0, 2, 7, 1}, 0, {}) == machine::verdict::done);  // there is no rank 7
}
