// A coordinator and three workers, explored exhaustively: every order in which messages can be taken, with every single
// fault. Models are whole numbers, so that their sum stays exactly.
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/coordinated_kind.hpp>
#include <rill/protocol/detail/coordinator_machine.hpp>
#include <rill/protocol/detail/exchange_machine.hpp>
#include <rill/protocol/detail/machine_loop.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::rank_t;

namespace {

using action = rill::detail::machine_action;
using event = rill::detail::machine_event;
using kinds = rill::detail::coordinated_kind;

constexpr int ranks = 4;
constexpr rill::detail::coordinated_limits within(std::uint64_t rounds) {
    return {rill::seconds(10), rill::seconds(100), rounds};
}

/// In round 0 ranks 1 and 2 exchange, then 2 and 3, then 1 and 3.
struct turns {
    static void fill(std::uint64_t round, rank_t rank, rill::mixing_row& row) {
        constexpr std::array<std::array<rank_t, 2>, 3> pairs{{{1, 2}, {2, 3}, {1, 3}}};
        row = {};
        const auto [a, b] = pairs[static_cast<std::size_t>(round % 3)];
        if (rank == a) row = {0.5, {{b, 0.5}}, {b}};
        if (rank == b) row = {0.5, {{a, 0.5}}, {a}};
    }
};

/// One fault, at any point.
enum class fault : unsigned char { none, lost, twice, no_room, late, dead, headless };

struct mail {
    rill::wire::header head{};
    std::int64_t content = 0;
};
struct worker {
    rill::detail::exchange_machine machine{ranks, within(0)};
    std::int64_t model = 0, newcomers_model = 0;
    std::array<std::int64_t, 2> got{};
    std::vector<std::pair<std::uint64_t, rank_t>> mixed;  ///< rounds and peers
    bool has_rejoined = false, is_dead = false, has_failed = false;
};

class explorer {
  public:
    struct world {
        rill::detail::coordinator_machine<turns> coordinator;
        std::array<worker, ranks> workers{};  ///< not of rank 0
        std::array<action, ranks> asked{};
        std::array<std::array<std::vector<mail>, ranks>, ranks> mails{};  ///< from, to
        rill::time_point now{};
        bool is_struck = false;
    };

    /// `rejoins`: rank 3 leaves with its first order and comes back for a model.
    explorer(fault only, bool rejoins, std::uint64_t rounds) : fault_(only), rejoins_(rejoins), rounds_(rounds) {}

    /// The first thing that is wrong, or nothing.
    std::string run() {
        world first{{{}, 1, ranks, {}, within(rounds_)}};
        first.asked[0] = first.coordinator.begin(first.now);
        for (rank_t rank = 1; rank < ranks; ++rank) {
            of(first, rank).model = first_model(rank);
            ask(first, rank) = of(first, rank).machine.join(false, first.now);
        }
        explore(std::move(first));
        return wrong_;
    }
    std::size_t ends() const { return ends_; }
    std::size_t mixed() const { return mixed_; }
    std::size_t welcomed() const { return welcomed_; }

  private:
    static std::int64_t first_model(rank_t rank) { return std::int64_t{rank} * 64; }
    static worker& of(world& at, rank_t rank) { return at.workers[static_cast<std::size_t>(rank)]; }
    static action& ask(world& at, rank_t rank) { return at.asked[static_cast<std::size_t>(rank)]; }
    static std::vector<mail>& between(world& at, rank_t from, rank_t to) {
        return at.mails[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
    }
    void require(bool holds, const char* what) {
        if (!holds && wrong_.empty()) wrong_ = what;
    }
    bool may_strike(const world& at, fault f) const { return fault_ == f && !at.is_struck; }

    static std::uint64_t hash(const world& at) {
        std::uint64_t h = rill::mix64(static_cast<std::uint64_t>(at.now.ns), at.is_struck ? 1U : 0U);
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        at.coordinator.visit_state(mix);
        for (const worker& each : at.workers) {
            each.machine.visit_state(mix);
            mix(each.model), mix(each.newcomers_model), mix(each.got[0]), mix(each.got[1]), mix(each.mixed.size());
            mix(each.has_rejoined), mix(each.is_dead), mix(each.has_failed);
        }
        for (const auto& from : at.mails)
            for (const auto& to : from) {
                mix(to.size());
                for (const mail& each : to)
                    mix(each.head.kind.number), mix(each.head.number), mix(each.head.weight), mix(each.content);
            }
        return h;
    }

    void explore(world at) {
        while (wrong_.empty() && advance(at)) continue;
        if (!wrong_.empty() || !seen_.insert(hash(at)).second) return;
        bool can_hear = false, can_wait = false;
        for (rank_t to = 0; to < ranks; ++to) {
            if (ask(at, to).what != action::ask::receive) continue;
            can_wait = true;
            for (rank_t from = 0; from < ranks; ++from) {
                if (between(at, from, to).empty()) continue;
                can_hear = true;
                hear(at, from, to, false);
                if (may_strike(at, fault::twice)) hear(at, from, to, true);
                if (may_strike(at, fault::lost)) lose(at, from, to);
            }
            if (may_strike(at, to == 0 ? fault::headless : fault::dead)) die(at, to);
        }
        if (can_wait && can_hear && may_strike(at, fault::late)) {
            world later = at;
            later.is_struck = true;
            pass_time(std::move(later));
        }
        if (!can_wait) return finish(at);
        if (!can_hear) pass_time(std::move(at));
    }

    /// Does what no other rank can see: sends, and begins what a worker does next.
    bool advance(world& at) {
        for (rank_t rank = 0; rank < ranks; ++rank) {
            worker& self = of(at, rank);
            action& asked = ask(at, rank);
            if (self.is_dead) continue;
            if (asked.what == action::ask::send) return send(at, rank), true;
            if (rank == 0) continue;
            if (asked.what == action::ask::fail) {
                self.has_failed = true;
                asked = {};
            }
            if (asked.what != action::ask::nothing || self.has_failed || self.machine.is_out() ||
                self.machine.is_abandoned())
                continue;
            if (self.machine.is_ordered())
                return asked = rejoins_ && rank == 3 && !self.has_rejoined ? self.machine.leave(at.now)
                                                                           : self.machine.exchange(at.now),
                       true;
            if (!self.machine.is_over() && !self.machine.takes_part()) {
                self.has_rejoined = true;
                return asked = self.machine.join(true, at.now), true;
            }
        }
        return false;
    }
    void send(world& at, rank_t rank) {
        const action told = ask(at, rank);
        if (may_strike(at, fault::no_room)) {
            world full = at;
            full.is_struck = true;
            tell(full, rank, {.happened = event::what::no_room, .peer = told.peer, .head = {.kind = told.kind}});
            explore(std::move(full));
        }
        mail sent{.head = {.kind = told.kind, .number = told.number}};
        worker& self = of(at, rank);
        if (kinds::is_from_coordinator(told.kind)) at.coordinator.order_of(told.peer).write_to(sent.head);
        if (told.kind == kinds::join) sent.head.weight = self.has_rejoined ? 1 : 0;
        if (told.kind == kinds::report) self.machine.report().write_to(sent.head);
        if (told.kind == kinds::values || told.kind == kinds::model) sent.content = self.model;
        if (!of(at, told.peer).is_dead) between(at, rank, told.peer).push_back(sent);
        tell(at, rank, {.happened = event::what::sent, .peer = told.peer, .head = {.kind = told.kind}});
    }
    static void tell(world& at, rank_t rank, const event& what) {
        ask(at, rank) = rank == 0 ? at.coordinator.on(what, at.now) : of(at, rank).machine.on(what, at.now);
    }

    void hear(world at, rank_t from, rank_t to, bool twice) {
        const mail got = between(at, from, to).front();
        if (!twice) between(at, from, to).erase(between(at, from, to).begin());
        at.is_struck |= twice;
        worker& self = of(at, to);
        const rank_t peer = self.machine.order().peer;
        const std::uint64_t round = self.machine.order().round;
        tell(at, to, {.happened = event::what::arrived, .peer = from, .head = got.head});
        const auto slot = [&](std::uint64_t number) -> std::int64_t& {
            return self.got[static_cast<std::size_t>(number % 2)];
        };
        if (to != 0 && ask(at, to).keeps) {
            if (got.head.kind == kinds::values) slot(got.head.number) = got.content;
            if (got.head.kind == kinds::model) self.newcomers_model = got.content;
            if (kinds::is_from_coordinator(got.head.kind)) {
                self.model = (self.model + slot(round)) / 2;
                self.mixed.emplace_back(round, peer);
            }
        }
        if (self.machine.is_ordered() && self.has_rejoined && self.mixed.empty()) self.model = self.newcomers_model;
        explore(std::move(at));
    }
    void lose(world at, rank_t from, rank_t to) {
        at.is_struck = true;
        between(at, from, to).erase(between(at, from, to).begin());
        explore(std::move(at));
    }
    void die(world at, rank_t rank) {
        at.is_struck = of(at, rank).is_dead = true;
        ask(at, rank) = {};
        for (rank_t other = 0; other < ranks; ++other) {
            between(at, other, rank).clear();
            if (other != rank) between(at, rank, other).push_back({.head = {.kind = kinds::ended}});
        }
        explore(std::move(at));
    }
    void pass_time(world at) {
        rill::time_point first = rill::deadline::never.at;
        for (const action& each : at.asked)
            if (each.what == action::ask::receive) first = std::min(first, each.until.at);
        require(first < rill::deadline::never.at, "somebody waits for ever");
        at.now = std::max(at.now, first);
        for (rank_t rank = 0; rank < ranks; ++rank)
            if (ask(at, rank).what == action::ask::receive && ask(at, rank).until.at <= at.now)
                tell(at, rank, {.happened = event::what::nothing_came});
        explore(std::move(at));
    }

    void finish(const world& at) {
        ++ends_;
        std::int64_t sum = 0, wanted = 0;
        for (rank_t rank = 1; rank < ranks; ++rank) {
            const worker& each = at.workers[static_cast<std::size_t>(rank)];
            sum += each.model;
            wanted += first_model(rank);
            if (each.is_dead) continue;
            // Who asks to join when the run is over, and the coordinator gone, hears nothing.
            require(each.machine.is_over() || (fault_ == fault::headless && each.machine.is_abandoned()) ||
                        (each.has_rejoined && each.has_failed),
                    "a worker that lives is not told the end");
            if (each.has_rejoined && !each.mixed.empty()) ++welcomed_;
            for (const auto& [round, peer] : each.mixed) {
                const worker& other = at.workers[static_cast<std::size_t>(peer)];
                const bool both = std::count(other.mixed.begin(), other.mixed.end(), std::pair(round, rank)) == 1;
                require(both || other.is_dead || other.machine.is_abandoned(),
                        "one end of an exchange has mixed, the other has not");
                ++mixed_;
            }
        }
        if (fault_ != fault::dead && fault_ != fault::headless && !rejoins_)
            require(sum == wanted, "the sum of all models has changed");
    }

    fault fault_;
    bool rejoins_;
    std::uint64_t rounds_;
    std::string wrong_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0, mixed_ = 0, welcomed_ = 0;
};

/// RILL_COORDINATOR_ROUNDS=3 explores further.
std::uint64_t rounds_of(fault only) {
    const char* const asked = std::getenv("RILL_COORDINATOR_ROUNDS");
    if (asked != nullptr) return static_cast<std::uint64_t>(std::atoll(asked));
    return only == fault::none || only == fault::dead ? 2 : 1;
}

}  // namespace

TEST_CASE("a coordinator and its workers mix both models or none, in every order and with every single fault") {
    for (const fault only :
         {fault::none, fault::lost, fault::twice, fault::no_room, fault::late, fault::dead, fault::headless}) {
        explorer all(only, false, rounds_of(only));
        CAPTURE(static_cast<int>(only));
        CHECK(all.run() == "");
        CHECK(all.ends() > 0);
        CHECK(all.mixed() > 0);
    }
}

TEST_CASE("a worker leaves and comes back for a model, in every order and with every single fault") {
    for (const fault only :
         {fault::none, fault::lost, fault::twice, fault::no_room, fault::late, fault::dead, fault::headless}) {
        const std::uint64_t rounds = rounds_of(only);
        if (rounds < 2) continue;  // it comes back in the second one at the earliest
        explorer all(only, true, rounds);
        CAPTURE(static_cast<int>(only));
        CHECK(all.run() == "");
        CHECK(all.welcomed() > 0);
    }
}
