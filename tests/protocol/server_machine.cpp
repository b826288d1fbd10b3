// One server of a parameter server, explored exhaustively: every order in which the messages of its workers can arrive,
// with every single fault.
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/protocol/detail/server_machine.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/unbounded.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::rank_t;
using namespace rill::straggler;

namespace {

using action = rill::detail::machine_action;
using event = rill::detail::machine_event;
using kinds = rill::detail::server_kind;
using rill::wire::header;

constexpr rill::duration timeout = rill::seconds(10);
constexpr rill::duration patience = rill::seconds(1000);

/// One fault, at any point.
enum class fault : unsigned char { none, twice, no_room, dead };

/// A worker: pulls and pushes in turn, then retires or ends the run. It gives up who is late.
struct worker {
    std::deque<header> sent;  ///< and not yet received by the server
    std::uint64_t pushes = 0, question = 0;
    std::uint64_t kept = 0;  ///< pushes that the server has counted
    bool leaves = false, has_final = false, is_dead = false, is_given_up = false;

    void send(rill::message_kind kind, std::uint64_t number, double weight) {
        header head{.kind = kind, .number = number, .weight = weight};
        sent.push_back(head);
    }
    void ask(rill::message_kind kind) {
        leaves = kind != kinds::pull;
        send(kind, ++question, double(pushes));
    }
};

template <class Age>
class explorer {
  public:
    struct world {
        rill::detail::server_machine<Age> machine;
        std::vector<worker> workers;
        rill::time_point now{};
        action asked{};
        bool is_struck = false;
    };

    /// `steps`: how often each worker pushes. The first worker ends the run, or retires as the others do.
    explorer(const Age& age, std::vector<std::uint64_t> steps, bool first_ends, fault only)
        : age_(age), steps_(std::move(steps)), first_ends_(first_ends), fault_(only) {}

    /// The first thing that is wrong, or nothing.
    std::string run() {
        const int count = static_cast<int>(steps_.size());
        world first{{age_, count, timeout, patience}, std::vector<worker>(steps_.size())};
        for (worker& each : first.workers) each.ask(kinds::pull);
        first.asked = first.machine.begin(first.now);
        explore(std::move(first));
        return wrong_;
    }
    std::size_t ends() const { return ends_; }
    std::size_t late() const { return late_; }

  private:
    void require(bool holds, const char* what) {
        if (!holds && wrong_.empty()) wrong_ = what;
    }

    static std::uint64_t hash(const world& at) {
        std::uint64_t h = rill::mix64(static_cast<std::uint64_t>(at.now.ns), at.is_struck);
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        at.machine.visit_state(mix);
        for (const worker& each : at.workers) {
            mix(each.pushes), mix(each.question), mix(each.kept), mix(each.sent.size());
            mix(each.leaves), mix(each.has_final), mix(each.is_dead), mix(each.is_given_up);
            for (const header& head : each.sent) mix(head.kind.number), mix(head.number), mix(head.weight);
        }
        return h;
    }

    /// Follows all that can happen from here.
    void explore(world at) {
        if (!seen_.insert(hash(at)).second) return;
        while (wrong_.empty() && at.asked.what == action::ask::send) {
            if (may_strike(at, fault::no_room)) refuse(at);
            deliver(at);
        }
        if (!wrong_.empty()) return;
        if (at.asked.what == action::ask::nothing) return finish(at);
        if (at.asked.what == action::ask::fail) return require(false, "the server fails");
        bool can_hear = false;
        for (rank_t from = 0; from < static_cast<rank_t>(at.workers.size()); ++from) {
            const worker& each = at.workers[static_cast<std::size_t>(from)];
            if (!each.sent.empty()) {
                can_hear = true;
                hear(at, from, false);
                if (may_strike(at, fault::twice)) hear(at, from, true);
            }
            if (may_strike(at, fault::dead) && !each.has_final) die(at, from);
        }
        if (!can_hear) pass_time(at);
    }

    bool may_strike(const world& at, fault f) const { return fault_ == f && !at.is_struck; }
    static worker& of(world& at, rank_t rank) { return at.workers[static_cast<std::size_t>(rank)]; }

    void tell(world& at, const event& what) { at.asked = at.machine.on(what, at.now); }

    void hear(world at, rank_t from, bool twice) {
        worker& sender = of(at, from);
        const header head = sender.sent.front();
        if (!twice) sender.sent.pop_front();
        if (twice) at.is_struck = true;
        if (head.kind == kinds::give_up) of(at, static_cast<rank_t>(head.number)).is_given_up = true;
        tell(at, {.happened = event::what::arrived, .peer = from, .head = head});
        if (head.kind == kinds::push && at.asked.keeps)
            require(head.number == of(at, from).kept++, "a push counts twice");
        explore(std::move(at));
    }
    void die(world at, rank_t rank) {
        at.is_struck = of(at, rank).is_dead = true;
        of(at, rank).sent.clear();
        tell(at, {.happened = event::what::arrived, .peer = rank, .head = {.kind = kinds::ended}});
        explore(std::move(at));
    }
    void pass_time(world at) {
        require(at.asked.until.at < rill::time_point{} + patience, "the server waits for ever");
        at.now = at.asked.until.at;
        tell(at, {.happened = event::what::nothing_came});
        explore(std::move(at));
    }
    void refuse(world at) {
        at.is_struck = true;
        tell(at, {.happened = event::what::no_room, .peer = at.asked.peer, .head = {.kind = at.asked.kind}});
        explore(std::move(at));
    }

    /// The server tells a worker something, on which the worker acts.
    void deliver(world& at) {
        const action told = at.asked;
        worker& to = of(at, told.peer);
        if (told.kind == kinds::answer) check_bound(at, told.peer);
        if (told.kind == kinds::late) ++late_;
        if (told.kind == kinds::final) {
            require(!to.has_final, "a worker is told the end twice");
            to.has_final = true;
        } else if (!to.is_dead) {
            require(told.number == to.question, "an answer to no question");
            act(at, told);
        }
        tell(at, {.happened = event::what::sent, .peer = told.peer, .head = {.kind = told.kind}});
    }
    void act(world& at, const action& told) {
        worker& to = of(at, told.peer);
        if (told.kind == kinds::late) {
            const rank_t late = at.machine.late_for(told.peer);
            require(late != told.peer && late != rill::no_rank, "nobody is late");
            to.send(kinds::give_up, static_cast<std::uint64_t>(late), double(to.pushes));
            to.ask(to.leaves ? kinds::retire : kinds::pull);
        } else if (told.kind == kinds::over) {
            to.ask(kinds::retire);
        } else if (to.pushes < steps_[static_cast<std::size_t>(told.peer)]) {
            to.send(kinds::push, to.pushes++, 1);
            to.ask(kinds::pull);
        } else {
            to.ask(first_ends_ && told.peer == 0 ? kinds::end : kinds::retire);
        }
    }

    /// Nobody that may still push is further behind than the staleness allows.
    void check_bound(const world& at, rank_t asker) {
        const std::uint64_t own = at.workers[static_cast<std::size_t>(asker)].kept;
        for (const worker& other : at.workers)
            if (!other.leaves && !other.is_given_up && other.kept < own)
                require(age_.may_lead(static_cast<std::uint32_t>(own - 1 - other.kept)), "a worker leads too far");
    }

    void finish(const world& at) {
        ++ends_;
        for (const worker& each : at.workers) {
            if (each.is_dead) continue;
            require(each.has_final, "a worker is not told the end");
            require(each.is_given_up || each.leaves, "the run ends before a worker has left");
            require(each.is_given_up || each.kept == each.pushes, "a push is missing");
        }
    }

    Age age_;
    std::vector<std::uint64_t> steps_;
    bool first_ends_;
    fault fault_;
    std::string wrong_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0, late_ = 0;
};

template <class Age>
std::size_t late_in(Age age, const std::vector<std::uint64_t>& steps) {
    std::size_t late = 0;
    for (const bool first_ends : {false, true})
        for (const fault only : {fault::none, fault::twice, fault::no_room, fault::dead}) {
            explorer<Age> all(age, steps, first_ends, only);
            CHECK(all.run() == "");
            CHECK(all.ends() > 0);
            if (only != fault::dead) CHECK(all.late() == 0);
            late += all.late();
        }
    return late;
}

}  // namespace

TEST_CASE("a server keeps its bound, counts each push once and ends, in every order and with every single fault") {
    CHECK(late_in(bounded{0}, {3, 3}) > 0);
    CHECK(late_in(bounded{1}, {6, 5}) > 0);
    CHECK(late_in(bounded{0}, {2, 3, 2}) > 0);
    CHECK(late_in(in_step{}, {3, 3}) > 0);
    CHECK(late_in(unbounded{}, {3, 3}) == 0);
    CHECK(late_in(unbounded{}, {2, 2, 2}) == 0);
}

TEST_CASE("a server that is never without messages tells who waits, after the timeout, that another is late") {
    rill::detail::server_machine<unbounded> machine({}, 3, timeout, patience);
    rill::time_point now{};
    const auto arrives = [&](rank_t from, rill::message_kind kind, std::uint64_t number) {
        const header head{.kind = kind, .number = number};
        return machine.on({.happened = event::what::arrived, .peer = from, .head = head}, now);
    };
    machine.begin(now);
    CHECK(arrives(0, kinds::retire, 1).what == action::ask::receive);  // rank 1 says nothing, and rank 2 goes on
    for (std::uint64_t pushes = 0; pushes < 9; ++pushes) {
        now = now + rill::seconds(1);
        CHECK(arrives(2, kinds::push, pushes).what == action::ask::receive);
    }
    now = now + rill::seconds(1);
    const action told = arrives(2, kinds::push, 9);
    CHECK(told.what == action::ask::send);
    CHECK(told.kind == kinds::late);
    CHECK(told.peer == 0);
    CHECK(machine.late_for(0) == 1);
}

TEST_CASE("a server counts nothing more once the run is over: some may have been told the end") {
    rill::detail::server_machine<unbounded> machine({}, 2, timeout, patience);
    const rill::time_point now{};
    const auto arrives = [&](rank_t from, rill::message_kind kind, std::uint64_t number, double pushes) {
        const header head{.kind = kind, .number = number, .weight = pushes};
        return machine.on({.happened = event::what::arrived, .peer = from, .head = head}, now);
    };
    machine.begin(now);
    arrives(0, kinds::give_up, 1, 0);
    CHECK(!machine.is_over());
    CHECK(arrives(0, kinds::retire, 1, 0).kind == kinds::final);
    CHECK(machine.is_over());
    const action waits = machine.on({.happened = event::what::no_room, .peer = 0, .head = {.kind = kinds::final}}, now);
    CHECK(waits.what == action::ask::receive);
    CHECK(!arrives(1, kinds::push, 0, 1).keeps);
    CHECK(arrives(1, kinds::pull, 1, 1).what != action::ask::fail);
    CHECK(machine.clock_of(1) == 0);
}
