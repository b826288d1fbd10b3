// The machines of two and three ranks of a pair averaging, explored exhaustively: every order in which their messages
// can arrive, with every single fault. Models are numbers whose halves are exact.
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/pair_kind.hpp>
#include <rill/protocol/detail/pair_machine.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::rank_t;
using rill::topology::anyone;
using rill::topology::bipartite;

namespace {

using action = rill::detail::machine_action;
using event = rill::detail::machine_event;
using kinds = rill::detail::pair_kind;

constexpr rill::duration timeout = rill::seconds(10);

/// One fault, at any point.
enum class fault : unsigned char { none, twice, lost, no_room, dead, cut };

/// What ranks do once they have pushed: nothing, which leaves the end out; all retire; the first one ends the run.
enum class ending : unsigned char { none, retired, ended };

struct message {
    rill::message_kind kind;
    std::uint64_t number = 0;
    double model = 0;
};

template <class Who>
struct rank_state {
    rill::detail::pair_machine<Who> machine;
    action asked{};
    double model = 0, sent = 0, before = 0;
    int steps = 0;     ///< gradients that it will still push
    int asks = 0;      ///< partners that it has asked whether they are free
    int meetings = 0;  ///< models that it has averaged with
    bool leaves = false, is_dead = false;

    bool has_ended() const { return is_dead || asked.what == action::ask::nothing || has_failed(); }
    bool has_failed() const { return asked.what == action::ask::fail; }
};

template <class Who>
class explorer {
  public:
    struct world {
        std::vector<rank_state<Who>> ranks;
        std::vector<std::vector<message>> links;  ///< by sender, then receiver: what is under way
        rill::time_point now{};
        int naps = 0;  ///< timeouts that ranks have spent computing
        bool is_struck = false;
        rank_t one = rill::no_rank, other = rill::no_rank;  ///< between whom the fault is
    };

    /// `steps`: how often each rank pushes.
    explorer(std::vector<int> steps, ending last, fault only) : steps_(std::move(steps)), ending_(last), fault_(only) {}

    /// The first thing that is wrong, or nothing.
    std::string run() {
        const int count = static_cast<int>(steps_.size());
        world first;
        first.links.resize(steps_.size() * steps_.size());
        for (rank_t rank = 0; rank < count; ++rank) {
            rill::detail::pair_machine<Who> machine(Who{}, count, rank, rill::random_key{7}, timeout);
            first.ranks.push_back({.machine = std::move(machine), .steps = steps_[static_cast<std::size_t>(rank)]});
        }
        for (rank_t rank = 0; rank < count; ++rank) of(first, rank).asked = of(first, rank).machine.begin(first.now);
        explore(std::move(first));
        return wrong_;
    }
    std::size_t ends() const { return ends_; }
    std::size_t failures() const { return failures_; }

  private:
    void require(bool holds, const char* what) {
        if (!holds && wrong_.empty()) wrong_ = what;
    }
    /// Whether ranks differ in their numbers alone, so that one of them stands for all.
    bool are_alike() const {
        return std::all_of(steps_.begin(), steps_.end(), [](int steps) { return steps == 0; });
    }
    int size() const { return static_cast<int>(steps_.size()); }
    static rank_state<Who>& of(world& at, rank_t rank) { return at.ranks[static_cast<std::size_t>(rank)]; }
    static std::vector<message>& link(world& at, rank_t from, rank_t to) {
        return at.links[static_cast<std::size_t>(from) * at.ranks.size() + static_cast<std::size_t>(to)];
    }
    bool may_strike(const world& at, fault f) const { return fault_ == f && !at.is_struck; }
    static void strike(world& at, rank_t one, rank_t other) {
        at.is_struck = true;
        at.one = one;
        at.other = other;
    }
    bool is_cut(const world& at, rank_t one, rank_t other) const {
        return fault_ == fault::cut && at.is_struck && std::minmax(one, other) == std::minmax(at.one, at.other);
    }

    static std::uint64_t hash(const world& at) {
        std::uint64_t h = rill::mix64(static_cast<std::uint64_t>(at.now.ns), at.is_struck);
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        const auto mix_model = [&](double value) { mix(std::bit_cast<std::uint64_t>(value)); };
        mix(at.one), mix(at.other), mix(at.naps);
        for (const auto& each : at.ranks) {
            each.machine.visit_state(mix);
            for (const double model : {each.model, each.sent}) mix_model(model);
            mix(each.steps), mix(each.asks), mix(each.meetings), mix(each.leaves), mix(each.is_dead),
                mix(each.asked.what);
        }
        for (const auto& each : at.links) {
            mix(each.size());
            for (const message& sent : each) mix(sent.kind.number), mix(sent.number), mix_model(sent.model);
        }
        return h;
    }

    /// Follows all that can happen from here.
    void explore(world at) {
        if (!wrong_.empty() || !seen_.insert(hash(at)).second) return;
        for (rank_t rank = 0; rank < size(); ++rank)
            if (of(at, rank).asked.what == action::ask::send) return send(std::move(at), rank);
        bool can_hear = false, can_act = false;
        for (rank_t to = 0; to < size(); ++to) {
            if (of(at, to).has_ended()) continue;
            for (rank_t from = 0; from < size(); ++from)
                if (!link(at, from, to).empty()) {
                    can_hear = true;
                    hear(at, from, to);
                }
            if (may_act(of(at, to))) {
                can_act = true;
                act(at, to);
            }
            if (may_strike(at, fault::dead) && (to == 0 || !are_alike())) die(at, to);
            if (may_strike(at, fault::cut) && (to == 1 || !are_alike()))
                for (rank_t other = 0; other < to; ++other) cut(at, other, to);
        }
        if (can_hear || (can_act && at.naps == (fault_ == fault::none ? 2 : 1))) return;
        at.naps += can_act ? 1 : 0;
        pass_time(std::move(at), can_act);
    }

    void tell(world& at, rank_t rank, const event& what) { of(at, rank).asked = of(at, rank).machine.on(what, at.now); }

    void send(world at, rank_t from) {
        const action asked = of(at, from).asked;
        if (may_strike(at, fault::no_room)) {
            world full = at;
            strike(full, from, asked.peer);
            tell(full, from, {.happened = event::what::no_room, .peer = asked.peer, .head = {.kind = asked.kind}});
            explore(std::move(full));
        }
        rank_state<Who>& sender = of(at, from);
        if (asked.kind == kinds::request) sender.sent = sender.model;
        if (asked.kind == kinds::ask) ++sender.asks;
        if (!of(at, asked.peer).has_ended() && !is_cut(at, from, asked.peer))
            link(at, from, asked.peer)
                .push_back({asked.kind, asked.number, asked.kind == kinds::request ? sender.sent : sender.before});
        tell(at, from, {.happened = event::what::sent, .peer = asked.peer, .head = {.kind = asked.kind}});
        explore(std::move(at));
    }

    void hear(const world& before, rank_t from, rank_t to) {
        world at = before;
        const message got = link(at, from, to).front();
        link(at, from, to).erase(link(at, from, to).begin());
        if (may_strike(at, fault::lost)) {
            world without = at;
            strike(without, from, to);
            explore(std::move(without));
        }
        if (may_strike(at, fault::twice)) {
            world again = at;
            strike(again, from, to);
            link(again, from, to).insert(link(again, from, to).begin(), got);
            take(again, from, to, got);
            explore(std::move(again));
        }
        take(at, from, to, got);
        explore(std::move(at));
    }
    void take(world& at, rank_t from, rank_t to, const message& got) {
        rank_state<Who>& taker = of(at, to);
        tell(at, to,
             {.happened = event::what::arrived, .peer = from, .head = {.kind = got.kind, .number = got.number}});
        if (!taker.asked.keeps) return;
        ++taker.meetings;
        const bool answers = got.kind == kinds::answer || taker.machine.has_crossed();
        if (!answers) taker.before = taker.model;
        taker.model += (got.model - (answers ? taker.sent : taker.before)) / 2;
    }

    bool may_act(const rank_state<Who>& of) const { return of.steps > 0 || (ending_ != ending::none && !of.leaves); }
    static double gradient(rank_t rank, int step) { return 4096.0 * (rank + 1) * (step + 1); }
    /// The rank pushes, or leaves.
    void act(world at, rank_t rank) {
        rank_state<Who>& own = of(at, rank);
        event next{.happened = event::what::arrived, .peer = rank, .head = {.kind = kinds::pushed}};
        if (own.steps > 0) {
            own.model += gradient(rank, --own.steps);
        } else {
            own.leaves = true;
            next.head = {.kind = kinds::leaves,
                         .number = ending_ == ending::ended && rank == 0 ? kinds::ends : kinds::retires};
        }
        tell(at, rank, next);
        explore(std::move(at));
    }
    /// What it has sent before arrives before its end.
    void die(world at, rank_t rank) {
        strike(at, rank, rank);
        of(at, rank).is_dead = true;
        for (rank_t other = 0; other < size(); ++other) {
            link(at, other, rank).clear();
            if (other != rank) link(at, rank, other).push_back({kinds::gone});
        }
        explore(std::move(at));
    }
    void cut(world at, rank_t one, rank_t other) {
        strike(at, one, other);
        link(at, one, other).clear();
        link(at, other, one).clear();
        explore(std::move(at));
    }
    /// Nothing is under way: the earliest deadline passes.
    void pass_time(world at, bool may_act) {
        rank_t first = rill::no_rank;
        for (rank_t rank = 0; rank < size(); ++rank)
            if (!of(at, rank).has_ended() &&
                (first == rill::no_rank || of(at, rank).asked.until.at < of(at, first).asked.until.at))
                first = rank;
        if (first == rill::no_rank) return finish(at);
        if (of(at, first).asked.until.at == rill::deadline::never.at) {
            require(may_act || ending_ == ending::none, "a rank waits for ever");
            return may_act ? void() : finish(at);
        }
        at.now = of(at, first).asked.until.at;
        tell(at, first, {.happened = event::what::nothing_came});
        const action& next = of(at, first).asked;
        require(next.what != action::ask::receive || next.until.at > at.now, "a rank waits for a time that has passed");
        explore(std::move(at));
    }

    void finish(world& at) {
        ++ends_;
        double sum = 0, pushed = 0;
        for (rank_t rank = 0; rank < size(); ++rank) {
            const rank_state<Who>& own = of(at, rank);
            const int steps = steps_[static_cast<std::size_t>(rank)];
            sum += own.model;
            for (int step = own.steps; step < steps; ++step) pushed += gradient(rank, step);
            require(own.asks <= steps * (size() - 1) || at.is_struck, "a rank asks without end");
            if (own.has_failed()) check_failure(at, rank);
            const bool must_meet = size() == 2 && ending_ == ending::none && fault_ == fault::none;
            require(!must_meet || own.meetings > 0, "two ranks do not meet");
        }
        if (fault_ == fault::none || fault_ == fault::twice)
            require(sum == pushed, "the sum of the models has changed");
    }
    void check_failure(world& at, rank_t rank) {
        ++failures_;
        const rank_t blamed = of(at, rank).asked.peer;
        require(at.is_struck && fault_ != fault::twice && fault_ != fault::dead, "a rank fails without a reason");
        require(std::minmax(rank, blamed) == std::minmax(at.one, at.other), "a rank names another link");
        require(size() == 2, "a rank that reaches most of the others fails");
    }

    std::vector<int> steps_;
    ending ending_;
    fault fault_;
    std::string wrong_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0, failures_ = 0;
};

/// Whether any rank has failed.
template <class Who>
bool explore(const std::vector<int>& steps, ending last, fault only) {
    CAPTURE(static_cast<int>(only));
    CAPTURE(static_cast<int>(last));
    explorer<Who> all(steps, last, only);
    CHECK(all.run() == "");
    CHECK(all.ends() > 0);
    return all.failures() > 0;
}

constexpr fault every_fault[] = {fault::none, fault::twice, fault::lost, fault::no_room, fault::dead, fault::cut};

}  // namespace

TEST_CASE("two ranks keep the sum of their models and end, in every order and with every single fault") {
    for (const ending last : {ending::retired, ending::ended})
        for (const fault only : every_fault) {
            const bool may_fail = only == fault::lost || only == fault::no_room || only == fault::cut;
            CHECK(explore<bipartite>({2, 1}, last, only) == may_fail);
            CHECK(explore<anyone>({1, 1}, last, only) == may_fail);
        }
    CHECK(!explore<anyone>({2, 1}, ending::retired, fault::twice));
    CHECK(!explore<anyone>({2, 2}, ending::none, fault::none));
}

TEST_CASE("three ranks keep the sum of their models, in every order and with every single fault") {
    for (const fault only : every_fault) {
        CHECK(!explore<bipartite>({2, 0, 2}, ending::none, only));
        CHECK(!explore<anyone>({1, 1, 0}, ending::none, only));
    }
    CHECK(!explore<anyone>({1, 1, 1}, ending::none, fault::none));
}

TEST_CASE("three ranks end, in every order, though one dies or a link is cut") {
    for (const fault only : {fault::none, fault::dead, fault::cut})
        CHECK(!explore<bipartite>({0, 0, 0}, ending::retired, only));
}
