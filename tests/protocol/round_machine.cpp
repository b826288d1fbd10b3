// Rounds of three ranks, explored exhaustively: every order in which messages can be taken, with every single fault.
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/round_machine.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/everyone.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/sampled.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::rank_t;
using namespace rill::straggler;

namespace {

using action = rill::detail::machine_action;
using event = rill::detail::machine_event;
using kinds = rill::detail::round_kind;

constexpr int ranks = 3;
constexpr rill::duration timeout = rill::seconds(100);

/// A set of contributions, each of a rank to a round.
using parts = std::uint64_t;
constexpr parts part(rank_t rank, std::uint64_t round) {
    return parts{1} << (8 * static_cast<unsigned>(rank) + static_cast<unsigned>(round));
}

struct packet {
    rill::wire::header head{};
    parts content = 0;
};

/// One fault, at any point. The first ones lose nothing.
enum class fault : unsigned char { none, twice, no_room, long_wait, lost, dead, too_late };
constexpr fault every_fault[] = {fault::none, fault::twice, fault::no_room, fault::long_wait,
                                 fault::lost, fault::dead,  fault::too_late};
constexpr bool loses(fault f) { return f >= fault::lost; }

/// What a rank does next by itself: the loop around its machine.
enum class stage : unsigned char { next, gather, look, contribute, gone };

template <class Policies>
struct member {
    rill::detail::round_machine<Policies> machine;
    action pending{};
    stage at = stage::next;
    rill::time_point now{};
    bool is_over = false;
    parts sends = 0;
    parts latest = 0;  ///< its own latest contribution
};

template <class Policies>
struct world {
    std::vector<member<Policies>> members;
    std::array<std::array<std::vector<packet>, ranks>, ranks> links;  ///< from, to
    parts in_results = 0, told_out = 0;
    bool is_struck = false;  ///< the fault has come
    bool has_failed = false;

    std::uint64_t hash() const {
        std::uint64_t h = rill::mix64(in_results, told_out, is_struck);
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        for (const auto& m : members) {
            m.machine.visit_state(mix);
            mix(m.pending.what), mix(m.pending.peer), mix(m.pending.kind.number), mix(m.pending.until.at.ns);
            mix(m.pending.from.begin), mix(m.pending.from.end);
            mix(m.at), mix(m.now.ns), mix(m.is_over), mix(m.sends), mix(m.latest);
        }
        for (const auto& from : links)
            for (const auto& link : from) {
                mix(link.size());
                for (const packet& p : link)
                    mix(p.head.kind.number), mix(p.head.number), mix(p.head.age), mix(p.head.contributors),
                        mix(p.content);
            }
        return h;
    }
};

template <class Enough, class Age, class Start = solo, class Asked = everyone>
class explorer {
  public:
    using policies = rill::detail::round_policies<Enough, Age, Start, Asked>;
    using state = world<policies>;

    explorer(const policies& chosen, int width, std::uint64_t rounds, fault only)
        : policies_(chosen), tree_{width}, rounds_(rounds), fault_(only) {}

    /// The first thing that is wrong, or nothing.
    std::string run() {
        state first;
        for (rank_t r = 0; r < ranks; ++r)
            first.members.push_back({.machine = {policies_, tree_, ranks, r, rill::random_key{7}, timeout}});
        push(std::move(first));
        while (wrong_.empty() && !todo_.empty()) {
            state next = std::move(todo_.back());
            todo_.pop_back();
            expand(next);
        }
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }
    std::size_t ends() const { return ends_; }
    std::size_t failures() const { return failures_; }

  private:
    using waiting = member<policies>;

    void push(state&& s) {
        if (seen_.insert(s.hash()).second) todo_.push_back(std::move(s));
    }
    void require(bool holds, const char* what) {
        if (!holds && wrong_.empty()) wrong_ = what;
    }
    bool may_strike(const state& s, fault f) const { return fault_ == f && !s.is_struck; }
    /// The worlds that follow from `s` by `change`.
    template <class Change>
    void branch(const state& s, Change&& change) {
        state next = s;
        change(next);
        push(std::move(next));
    }
    template <class Change>
    void strike(const state& s, fault f, Change&& change) {
        if (may_strike(s, f)) branch(s, [&](state& next) { (next.is_struck = true, change(next)); });
    }

    // What no other rank can see or hinder happens at once; a choice is only what is received, and when.
    void expand(const state& s) {
        if (s.has_failed) return void(++failures_);
        for (rank_t r = 0; r < ranks; ++r)
            if (const waiting& m = s.members[static_cast<std::size_t>(r)];
                m.at != stage::gone && m.pending.what != action::ask::receive)
                return advance(s, r);
        bool goes_on = false, is_over = true;
        for (rank_t r = 0; r < ranks; ++r) {
            if (s.members[static_cast<std::size_t>(r)].at == stage::gone) continue;
            is_over = false;
            goes_on = receive(s, r) || goes_on;
        }
        if (is_over) return finish(s);
        if (goes_on) return;
        require(s.is_struck && loses(fault_), "somebody waits for ever, and nothing is lost");
        for (rank_t r = 0; r < ranks; ++r)
            if (s.members[static_cast<std::size_t>(r)].at != stage::gone)
                branch(s, [&](state& next) { pass_time(next, r, {}); });
    }

    void finish(const state& s) {
        ++ends_;
        for (const waiting& m : s.members)
            require(m.machine.has_ended() || (s.is_struck && loses(fault_)), "the end has not reached everybody");
        if (s.is_struck || !std::is_same_v<Enough, wait_all> || !std::is_same_v<Asked, everyone>) return;
        for (rank_t r = 0; r < ranks; ++r)
            for (std::uint64_t round = 1; round <= rounds_; ++round)
                require((s.in_results & part(r, round)) != 0, "who waits for all has not all");
    }

    void advance(const state& s, rank_t r) {
        strike(s, fault::dead, [&](state& next) { next.members[static_cast<std::size_t>(r)].at = stage::gone; });
        const action& asked = s.members[static_cast<std::size_t>(r)].pending;
        if (asked.what == action::ask::send) {
            strike(s, fault::lost, [&](state& next) { send(next, r, 0); });
            strike(s, fault::twice, [&](state& next) { send(next, r, 2); });
            if (asked.until.is_immediate())
                strike(s, fault::no_room, [&](state& next) {
                    answer(next, r,
                           {.happened = event::what::no_room, .peer = asked.peer, .head = {.kind = asked.kind}});
                });
        }
        branch(s, [&](state& next) {
            switch (asked.what) {
                case action::ask::send: return send(next, r, 1);
                case action::ask::announce: return answer(next, r, {});
                case action::ask::fail: return fail(next, r);
                default: return call(next, r);
            }
        });
    }

    bool receive(const state& s, rank_t r) {
        const waiting& m = s.members[static_cast<std::size_t>(r)];
        strike(s, fault::dead, [&](state& next) { next.members[static_cast<std::size_t>(r)].at = stage::gone; });
        const bool is_patient = !m.pending.until.is_immediate();
        if (is_patient) {
            strike(s, fault::long_wait, [&](state& next) { pass_time(next, r, {}); });
            strike(s, fault::too_late, [&](state& next) { pass_time(next, r, timeout * 2); });
        }
        bool goes_on = false;
        for (const rank_t from : m.machine.neighbours(m.pending.from)) {
            if (s.links[static_cast<std::size_t>(from)][static_cast<std::size_t>(r)].empty()) continue;
            goes_on = true;
            branch(s, [&](state& next) { deliver(next, from, r); });
        }
        if (!is_patient || m.pending.until.at - m.now < timeout / 4) {
            goes_on = true;
            branch(s, [&](state& next) { pass_time(next, r, {}); });
        }
        return goes_on;
    }

    void answer(state& s, rank_t r, const event& e) {
        waiting& m = s.members[static_cast<std::size_t>(r)];
        m.pending = m.machine.on(e, m.now);
    }
    /// Until the wait of a rank is over, and `more`.
    void pass_time(state& s, rank_t r, rill::duration more) {
        waiting& m = s.members[static_cast<std::size_t>(r)];
        if (!m.pending.until.is_immediate()) m.now = std::max(m.now, m.pending.until.at) + more;
        answer(s, r, {.happened = event::what::nothing_came});
    }
    /// The handle of a message is what it contains.
    void deliver(state& s, rank_t from, rank_t to) {
        auto& link = s.links[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
        const packet p = link.front();
        link.erase(link.begin());
        answer(s, to, {.happened = event::what::arrived, .peer = from, .head = p.head, .handle = p.content});
    }
    void send(state& s, rank_t r, int copies) {
        waiting& m = s.members[static_cast<std::size_t>(r)];
        const action asked = m.pending;
        packet p{.head = {.kind = asked.kind, .number = asked.number}};
        if (asked.kind == kinds::contribute) {
            p.content = m.sends;
        } else {
            const auto& child = m.machine.children().of(asked.peer);
            p.head.age = static_cast<std::uint32_t>(asked.number - child.answered);
            p.head.contributors = child.latest == rill::detail::contribution_fate::out ? 0 : 1;
        }
        for (; copies > 0; --copies)
            s.links[static_cast<std::size_t>(r)][static_cast<std::size_t>(asked.peer)].push_back(p);
        answer(s, r, {.happened = event::what::sent, .peer = asked.peer, .head = {.kind = asked.kind}});
    }
    /// The root fails for all, another rank for itself.
    void fail(state& s, rank_t r) {
        require(s.is_struck && loses(fault_), "a rank fails though nothing is lost");
        waiting& m = s.members[static_cast<std::size_t>(r)];
        require(m.pending.reason != static_cast<std::uint8_t>(rill::detail::round_failure::not_given),
                "a rank contributes to a round that it has not been given");
        require(r != 0 || fault_ == fault::too_late || !does_without_one(), "the root fails though it misses one only");
        m.at = stage::gone;
        if (r == 0) s.has_failed = true;
    }
    bool does_without_one() const {
        return tree_.children(ranks, 0) > 1 && !std::is_same_v<Enough, wait_all> && !std::is_same_v<Age, bounded> &&
               std::is_same_v<Start, solo> && std::is_same_v<Asked, everyone>;
    }

    /// The call of a rank's machine is over: goes on to the next one.
    void call(state& s, rank_t r) {
        waiting& m = s.members[static_cast<std::size_t>(r)];
        switch (m.at) {
            case stage::next: return begin(s, r);
            case stage::gather:
                learn(s, r);
                if (m.machine.has_ended()) return void(m.at = stage::gone);
                m.at = stage::look;
                m.pending = m.machine.gather(m.now);
                return;
            case stage::look:
                m.at = stage::contribute;
                m.pending = m.machine.look(m.now);
                return;
            case stage::contribute: return contribute(s, r);
            case stage::gone: return;
        }
    }
    void begin(state& s, rank_t r) {
        waiting& m = s.members[static_cast<std::size_t>(r)];
        m.at = stage::gather;
        m.now = {};  // what has passed earlier decides nothing more
        if (r != 0)
            m.pending = m.machine.take(m.now);
        else
            m.pending = m.machine.round() < rounds_ ? m.machine.begin(m.now) : m.machine.end(timeout, m.now);
    }
    /// A rank is told what has become of its latest contribution.
    void learn(state& s, rank_t r) {
        const waiting& m = s.members[static_cast<std::size_t>(r)];
        if (r == 0 || m.latest == 0) return;
        const bool is_in = (s.in_results & m.latest) != 0;
        if (!m.machine.was_in()) s.told_out |= m.latest;
        require(!is_in || m.machine.was_in(), "a rank is told that it is out, and is in a result");
        if (std::is_same_v<Age, bounded>)
            require(m.machine.was_in() || m.machine.has_ended(), "a contribution is dropped where nothing is");
        if (std::is_same_v<Age, fresh>)
            require(is_in || !m.machine.was_in(), "a rank is told that it is in, and is in no result");
    }
    void contribute(state& s, rank_t r) {
        waiting& m = s.members[static_cast<std::size_t>(r)];
        m.at = stage::next;
        const parts own = part(r, m.machine.round());
        parts sum = own;
        for (const auto& each : m.machine.arrivals()) {
            require((sum & each.message) == 0, "a contribution is twice in a sum");
            sum |= each.message;
        }
        if (r == 0) return judge(s, sum);
        m.sends = m.machine.is_over() ? 0 : sum;
        m.latest = own;
        m.pending = m.machine.hand_up(m.now);
    }
    void judge(state& s, parts sum) {
        require((sum & s.in_results) == 0, "a contribution is in two results");
        require((sum & s.told_out) == 0, "a rank was told that it is out, and is in a result");
        s.in_results |= sum;
        const std::uint64_t now = s.members[0].machine.round();
        for (rank_t r = 0; r < ranks; ++r)
            for (std::uint64_t round = 1; round <= now; ++round)
                if ((sum & part(r, round)) != 0)
                    require(now - round <= oldest(r), "a contribution is older than its bound");
    }
    std::uint64_t oldest(rank_t r) const {
        if constexpr (std::is_same_v<Age, unbounded>) return rounds_;
        std::uint64_t edges = 0, rounds = 0;
        if constexpr (std::is_same_v<Age, bounded>)
            for (; r != 0; r = tree_.parent(ranks, r))
                if (policies_.age.rounds > 0) rounds += ++edges * (policies_.age.rounds - 1) + 1;
        return rounds;
    }

    policies policies_;
    rill::topology::tree tree_;
    std::uint64_t rounds_;
    fault fault_;
    std::vector<state> todo_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0, failures_ = 0;
    std::string wrong_;
};

struct tally {
    std::size_t states = 0, ends = 0, failures = 0;
};

template <class Enough, class Age, class Start = solo, class Asked = everyone>
void explore(tally& all, const Enough& enough, const Age& age, const Start& start = {},
             const std::vector<int>& widths = {2, 1}, const Asked& asked = {}) {
    for (const int width : widths)
        for (const fault f : every_fault) {
            CAPTURE(Enough::name);
            CAPTURE(Age::name);
            CAPTURE(width);
            CAPTURE(static_cast<int>(f));
            explorer<Enough, Age, Start, Asked> each({enough, age, start, asked}, width, f == fault::none ? 3 : 2, f);
            CHECK(each.run() == "");
            CHECK((each.ends() > 0 || loses(f)));
            all.states += each.states();
            all.ends += each.ends();
            all.failures += each.failures();
        }
}

template <class Age>
void explore_completions(tally& all, const Age& age) {
    explore(all, wait_all{}, age);
    explore(all, fastest{1}, age);
    explore(all, until{.after = rill::milliseconds(1)}, age, solo{}, {1});
}

}  // namespace

TEST_CASE("rounds, explored: three ranks on a star and a chain, every order, every single fault") {
    tally all;
    explore_completions(all, fresh{});
    explore_completions(all, bounded{1});
    explore_completions(all, unbounded{});
    explore(all, fastest{1}, bounded{2});
    explore(all, tolerate{1}, fresh{}, all_ready{});
    explore(all, wait_all{}, fresh{}, solo{}, {2}, sampled{.fraction = 0.5});
    explore(all, wait_all{}, bounded{1}, all_ready{}, {2}, sampled{.fraction = 0.5});
    CHECK(all.states > 100'000);
    CHECK(all.failures > 0);
    MESSAGE(all.states << " states, " << all.ends << " ends, " << all.failures << " failures of the root");
}
