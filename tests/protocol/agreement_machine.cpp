// The agreement about the next view, explored: three ranks exhaustively, with one death at any point, and up to seven
// by random schedules in which messages are lost, repeated, late and out of order.
#include <rill/concept/peer_event.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_machine.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/quorum.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using rill::peer_change;
using rill::quorum;
using rill::rank_t;
using rill::detail::agreement_action;
using rill::detail::agreement_decision;
using rill::detail::agreement_event;
using rill::detail::agreement_machine;
using rill::detail::agreement_message;

namespace {

using what = agreement_event::what;

constexpr rill::detail::agreement_limits limits{
    .repeat = rill::seconds(1), .patience = rill::seconds(4), .longest = rill::seconds(1000)};
constexpr std::uint64_t first_life = 7;

/// Something under way from one rank to another: a message, or what the transport tells of the sender.
struct parcel {
    std::optional<peer_change> change{};
    agreement_message message{};
    std::uint64_t life = first_life;  ///< of the sender
};

struct rank_state {
    agreement_machine machine;
    bool is_dead = false;
    bool is_newcomer = false;  ///< it asks to be taken in, and has no machine of its own yet
    std::uint32_t seen_epoch = 0;
    std::uint64_t life = first_life;
};

/// Ranks that take steps together, and all that they have decided and committed.
struct world {
    std::vector<rank_state> ranks{};
    std::vector<std::deque<parcel>> links{};  ///< by sender, then receiver
    /// Who has entered the second phase of a step, by epoch and step.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<rank_t>> entered{};
    std::map<std::uint32_t, agreement_decision> decisions{};
    std::map<std::uint64_t, std::uint32_t> committed_in{};  ///< the epoch in which a step was first committed
    rill::time_point now{};
    int deaths = 0, failures = 0, suspicions = 0, hurries = 0;
    std::string wrong{};
    quorum policy;

    world(int size, quorum chosen) : policy(chosen) {
        agreement_decision begin;
        rill::view& first = begin.next;
        for (rank_t rank = 0; rank < size; ++rank) {
            first.members.push_back(rank);
            first.incarnations.push_back(first_life);
        }
        for (rank_t rank = 0; rank < size; ++rank) ranks.push_back({agreement_machine(begin, rank, policy, limits)});
        links.resize(ranks.size() * ranks.size());
    }

    int size() const { return static_cast<int>(ranks.size()); }
    rank_state& at(rank_t rank) { return ranks[static_cast<std::size_t>(rank)]; }
    std::deque<parcel>& link(rank_t from, rank_t to) {
        return links[static_cast<std::size_t>(from) * ranks.size() + static_cast<std::size_t>(to)];
    }
    void require(bool holds, const char* text) {
        if (!holds && wrong.empty()) wrong = text;
    }

    void tell(rank_t rank, const agreement_event& event) {
        rank_state& of = at(rank);
        const std::uint64_t before = of.machine.committed();
        const std::uint32_t epoch = of.machine.view().epoch;
        for (const agreement_action& each : of.machine.on(event, now)) {
            if (each.what != agreement_action::ask::send || at(each.peer).is_dead) continue;
            link(rank, each.peer).push_back({std::nullopt, each.message, of.life});
            using form = agreement_message::form;
            if (of.machine.ended_by(each.message.value) == nullptr)
                link(rank, each.peer).back().message.view_is = form::whole;
        }
        const std::uint64_t after = of.machine.committed();
        check_decision(rank);
        if (after != before && event.happened != what::caught_up) check_commit(epoch, before, after);
    }
    /// One decision for each epoch, and none takes back what a rank has committed.
    void check_decision(rank_t rank) {
        rank_state& of = at(rank);
        const agreement_decision& last = of.machine.last();
        if (last.next.epoch == of.seen_epoch) return;
        of.seen_epoch = last.next.epoch;
        const auto known = decisions.emplace(last.next.epoch, last).first;
        require(known->second == last, "two decisions in one epoch");
        require(of.machine.committed() <= last.step, "a decision takes back what a rank has committed");
        // Who lacks the step takes it from a member that has it.
        if (of.machine.is_excluded() || of.machine.committed() >= last.step) return;
        const bool somebody = std::any_of(ranks.begin(), ranks.end(), [&](const rank_state& other) {
            return !other.machine.is_excluded() && other.machine.prepared() >= last.step;
        });
        require(somebody, "nobody has the result of a committed step");
        tell(rank, {.happened = what::caught_up, .step = last.step});
    }
    /// `epoch`: of the view in which the rank was prepared.
    void check_commit(std::uint32_t epoch, std::uint64_t before, std::uint64_t after) {
        require(after == before + 1, "a rank skips a step");
        const auto ended = decisions.find(epoch + 1);
        require(ended == decisions.end() || after <= ended->second.step,
                "a step is committed that was decided to be repeated");
        require(committed_in.emplace(after, epoch).first->second == epoch, "a step is committed in two views");
    }

    /// The machine itself keeps a frozen rank from its steps.
    bool may_work(rank_t rank) {
        const auto& m = at(rank).machine;
        return !at(rank).is_dead && !at(rank).is_newcomer && !m.is_excluded();
    }
    bool may_prepare(rank_t rank, std::uint64_t steps) {
        const auto& m = at(rank).machine;
        return may_work(rank) && m.prepared() == m.committed() && m.committed() < steps;
    }
    void prepare(rank_t rank) {
        const auto& m = at(rank).machine;
        tell(rank, {.happened = what::prepared});
        if (m.prepared() > m.committed()) entered[{m.view().epoch, m.prepared()}].push_back(rank);
    }
    /// Whether this rank may know that all are prepared.
    bool may_commit(rank_t rank) {
        const auto& m = at(rank).machine;
        if (!may_work(rank) || m.prepared() == m.committed()) return false;
        const auto in = entered.find({m.view().epoch, m.prepared()});
        return in != entered.end() && in->second.size() == m.view().members.size();
    }
    void deliver(rank_t from, rank_t to, std::size_t position = 0) {
        auto& queue = link(from, to);
        const parcel got = queue[position];
        queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(position));
        give(from, to, got);
    }
    void give(rank_t from, rank_t to, parcel got) {
        rank_state& of = at(to);
        if (of.is_dead) return;
        using form = agreement_message::form;
        const bool knows_view = !of.is_newcomer && got.message.value.next.epoch == of.machine.view().epoch + 1;
        if (got.message.view_is == form::difference && !knows_view) {
            got.message.view_is = form::unread;
            got.message.value.next.members.clear(), got.message.value.next.incarnations.clear();
        }
        if (of.is_newcomer) return welcome(to, got);
        if (got.change)
            return tell(to, {.happened = what::changed, .peer = from, .change = *got.change, .incarnation = got.life});
        if (of.machine.hears(from, got.life, got.message))
            tell(to, {.happened = what::arrived, .peer = from, .message = &got.message});
    }
    /// A newcomer takes up the view that has taken it in, with the state of its members.
    void welcome(rank_t rank, const parcel& got) {
        if (got.change || got.message.kind != agreement_message::what::decide) return;
        const agreement_decision& value = got.message.value;
        rank_state& of = at(rank);
        if (!is_listed(value.next, rank, of.life)) return;
        of.is_newcomer = false;
        of.seen_epoch = value.next.epoch;
        of.machine = agreement_machine(value, rank, policy, limits);
    }
    static bool is_listed(const rill::view& in, rank_t rank, std::uint64_t life) {
        const auto found = std::lower_bound(in.members.begin(), in.members.end(), rank);
        return found != in.members.end() && *found == rank &&
               in.incarnations[static_cast<std::size_t>(found - in.members.begin())] == life;
    }
    void die(rank_t rank) {
        ++deaths;
        at(rank).is_dead = true;
        for (rank_t other = 0; other < size(); ++other) {
            link(other, rank).clear();
            if (other != rank && !at(other).is_dead)
                link(rank, other).push_back({peer_change::ended, {}, at(rank).life});
        }
    }

    /// The earliest rank that waits for a time; `no_rank` if none does.
    rank_t first_to_wake() {
        rank_t first = rill::no_rank;
        for (rank_t rank = 0; rank < size(); ++rank)
            if (!at(rank).is_dead && at(rank).machine.wake() != rill::deadline::never.at &&
                (first == rill::no_rank || at(rank).machine.wake() < at(first).machine.wake()))
                first = rank;
        return first;
    }
    void wake(rank_t rank) {
        now = std::max(now, at(rank).machine.wake());
        tell(rank, {.happened = what::tick});
    }

    /// All is quiet: whoever lives and was not left out has the same view and the same steps.
    void check_end() {
        const rank_state* first = nullptr;
        for (rank_t rank = 0; rank < size(); ++rank) {
            const rank_state& of = at(rank);
            if (of.is_dead || of.is_newcomer || of.machine.is_excluded()) continue;
            require(!of.machine.is_frozen(), "a rank waits for ever");
            if (first == nullptr) first = &of;
            require(of.machine.view() == first->machine.view(), "two views at the end");
            require(of.machine.committed() == first->machine.committed(), "committed on one survivor, not on all");
        }
    }

    std::uint64_t hash() const {
        std::uint64_t h = rill::mix64(static_cast<std::uint64_t>(now.ns), links.size());
        const auto mix = [&](auto value) { h = rill::mix64(h, static_cast<std::uint64_t>(value)); };
        mix(deaths), mix(failures), mix(suspicions), mix(hurries);
        for (const rank_state& each : ranks) each.machine.visit_state(mix), mix(each.is_dead);
        for (const auto& queue : links) {
            mix(queue.size());
            for (const parcel& each : queue) {
                const agreement_message& m = each.message;
                mix(each.change ? static_cast<int>(*each.change) : 0), mix(m.kind), mix(m.epoch);
                mix(m.at.attempt), mix(m.at.rank), mix(m.accepted_at.attempt), mix(m.accepted_at.rank);
                mix(m.view_is), mix(m.prepared), mix(m.committed), mix(m.value.step), mix(m.value.next.epoch);
                mix(m.others.size()), mix(m.ended.size());
                for (const rank_t rank : m.others) mix(rank);
                for (const rank_t rank : m.ended) mix(rank);
                for (const rank_t rank : m.value.next.members) mix(rank);
                for (const rank_t rank : m.value.unheard) mix(rank);
            }
        }
        for (const auto& [key, in] : entered) {
            mix(key.first), mix(key.second);
            std::uint64_t set = 0;
            for (const rank_t rank : in) set |= std::uint64_t{1} << static_cast<unsigned>(rank);
            mix(set);
        }
        return h;
    }
};

/// What may happen in an exploration, how often.
struct budget {
    std::uint64_t steps = 1;
    int deaths = 1, failures = 0, suspicions = 0, hurries = 0;
    std::uint32_t epochs = 2, ballots = 3;
};

class explorer {
  public:
    explorer(int size, budget of, quorum policy = quorum::majority) : may_(of), size_(size), policy_(policy) {}

    /// The first thing that is wrong, or nothing.
    std::string run() {
        open_.push_back(world(size_, policy_));
        while (!open_.empty() && wrong_.empty()) {
            world next = std::move(open_.back());
            open_.pop_back();
            follow(std::move(next));
        }
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }
    std::size_t ends() const { return ends_; }
    /// How many paths have come to the bounds of epochs and ballots.
    std::size_t cut_off() const { return cut_; }

  private:
    template <class Do>
    void branch(const world& at, Do&& happen) {
        if (!wrong_.empty()) return;
        world next = at;
        happen(next);
        if (!next.wrong.empty()) wrong_ = next.wrong;
        if (seen_.insert(next.hash()).second) open_.push_back(std::move(next));
    }

    /// Adds all that can happen from here to what is to be explored.
    void follow(world at) {
        const auto exceeds = [&](const rank_state& of) {
            return of.machine.view().epoch > may_.epochs || of.machine.ballots() > may_.ballots;
        };
        if (std::any_of(at.ranks.begin(), at.ranks.end(), exceeds)) {
            ++cut_;
            return;
        }
        bool can_go_on = false;
        for (rank_t to = 0; to < size_; ++to) {
            rank_state& of = at.at(to);
            if (of.is_dead) continue;
            for (rank_t from = 0; from < size_; ++from)
                if (!at.link(from, to).empty()) {
                    can_go_on = true;
                    branch(at, [&](world& w) { w.deliver(from, to); });
                }
            if (at.may_prepare(to, may_.steps)) {
                can_go_on |= !of.machine.is_frozen();
                branch(at, [&](world& w) { w.prepare(to); });
            }
            if (at.may_commit(to)) {
                can_go_on |= !of.machine.is_frozen();
                branch(at, [&](world& w) { w.tell(to, {.happened = what::all_prepared}); });
            }
            // A rank whose attempt fails ends the view: after a death, or for a reason of its own.
            const bool is_working = at.may_work(to) && !of.machine.is_frozen() && of.machine.committed() < may_.steps;
            const bool lacks_a_member =
                std::any_of(of.machine.view().members.begin(), of.machine.view().members.end(), [&](rank_t member) {
                    const agreement_machine& other = at.at(member).machine;
                    const std::uint32_t epoch = of.machine.view().epoch;
                    return at.at(member).is_dead || (other.is_frozen() && other.view().epoch == epoch) ||
                           other.view().epoch > epoch;
                });
            if (is_working && lacks_a_member) {
                can_go_on = true;
                branch(at, [&](world& w) { w.tell(to, {.happened = what::ends}); });
            }
            if (is_working && !lacks_a_member && at.failures < may_.failures)
                branch(at, [&](world& w) {
                    ++w.failures;
                    w.tell(to, {.happened = what::ends});
                });
            if (at.deaths < may_.deaths) branch(at, [&](world& w) { w.die(to); });
            if (at.suspicions < may_.suspicions)
                for (rank_t other = 0; other < size_; ++other)
                    if (other != to && !at.at(other).is_dead)
                        branch(at, [&](world& w) {
                            ++w.suspicions;
                            w.tell(to, {.happened = what::changed,
                                        .peer = other,
                                        .change = peer_change::silent,
                                        .incarnation = first_life});
                        });
            if (at.hurries < may_.hurries && of.machine.wake() != rill::deadline::never.at)
                branch(at, [&](world& w) {
                    ++w.hurries;
                    w.wake(to);
                });
        }
        if (can_go_on) return;
        const rank_t first = at.first_to_wake();
        if (first == rill::no_rank || at.now.ns > rill::seconds(40).ns) {
            ++ends_;
            at.check_end();
            if (!at.wrong.empty()) wrong_ = at.wrong;
            return;
        }
        branch(at, [&](world& w) { w.wake(first); });
    }

    budget may_;
    int size_;
    quorum policy_;
    std::string wrong_;
    std::vector<world> open_;
    std::unordered_set<std::uint64_t> seen_;
    std::size_t ends_ = 0, cut_ = 0;
};

void explore(int size, const budget& of, quorum policy = quorum::majority) {
    explorer all(size, of, policy);
    CHECK(all.run() == "");
    CHECK(all.ends() > 0);
    MESSAGE(size << " ranks: " << all.states() << " states, " << all.ends() << " ends, " << all.cut_off()
                 << " cut off");
}

/// One random course: steps, deaths, restarts, false suspicions; messages that are lost, repeated, late and out of
/// order. Then the network is whole again.
class random_course {
  public:
    explicit random_course(std::uint64_t seed)
        : draw_(rill::random_key{seed}), all_(2 + static_cast<int>(draw_.below(6)), quorum::majority) {}

    std::string run() {
        const std::uint64_t length = 50 + draw_.below(250);
        for (std::uint64_t i = 0; i < length && all_.wrong.empty(); ++i) happen(true);
        heal();
        for (int i = 0; i < 100'000 && all_.wrong.empty() && !is_quiet(); ++i) happen(false);
        if (!all_.wrong.empty()) return all_.wrong;
        if (!has_quorum()) {
            ++without_quorum;
            return {};
        }
        all_.check_end();
        return all_.wrong;
    }
    static inline std::uint64_t decisions = 0, commits = 0, deaths = 0, taken_in = 0, without_quorum = 0;

    ~random_course() {
        decisions += all_.decisions.size();
        commits += all_.committed_in.size();
        deaths += static_cast<std::uint64_t>(all_.deaths);
        for (const auto& each : all_.ranks) taken_in += !each.is_newcomer && each.life != first_life ? 1U : 0U;
    }
    random_course(const random_course&) = delete;
    random_course& operator=(const random_course&) = delete;

  private:
    rank_t any() { return static_cast<rank_t>(draw_.below(static_cast<std::uint64_t>(all_.size()))); }
    bool one_in(std::uint64_t n) { return draw_.below(n) == 0; }

    void happen(bool with_faults) {
        const rank_t rank = any();
        rank_state& of = all_.at(rank);
        if (with_faults && one_in(60)) return fault(rank);
        if (of.is_dead) return;
        if (of.is_newcomer && (with_faults ? one_in(4) : nothing_is_under_way())) return ask_to_join(rank);
        if (of.is_newcomer || !one_in(3)) return deliver(rank, with_faults);
        if (all_.may_commit(rank) && (with_faults || !of.machine.is_frozen()))
            return all_.tell(rank, {.happened = what::all_prepared});
        if (with_faults && all_.may_prepare(rank, 1000) && (!of.machine.is_frozen() || one_in(4)))
            return all_.prepare(rank);
        const bool fails = lacks_a_member(rank) || of.machine.knows_newcomers() || (with_faults && one_in(30));
        if (all_.may_work(rank) && !of.machine.is_frozen() && fails) return all_.tell(rank, {.happened = what::ends});
        if (of.machine.is_frozen() && (with_faults ? one_in(4) && nothing_for(rank) : nothing_is_under_way())) {
            all_.now = std::max(all_.now, of.machine.wake());
            if (of.machine.wake() != rill::deadline::never.at) all_.tell(rank, {.happened = what::tick});
        }
    }
    bool nothing_for(rank_t rank) {
        for (rank_t from = 0; from < all_.size(); ++from)
            if (!all_.link(from, rank).empty() && !one_in(10)) return false;
        return true;
    }
    bool nothing_is_under_way() {
        return std::all_of(all_.links.begin(), all_.links.end(), [](const auto& queue) { return queue.empty(); });
    }
    void deliver(rank_t to, bool with_faults) {
        const rank_t from = any();
        auto& queue = all_.link(from, to);
        if (queue.empty()) return;
        // What the transport tells of a life overtakes nothing, and nothing overtakes it.
        std::size_t free = 0;
        while (free < queue.size() && !queue[free].change) ++free;
        const std::size_t position = free > 1 && with_faults ? draw_.below(free) : 0;
        if (with_faults && !queue[position].change && one_in(12)) {
            queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(position));
            return;
        }
        if (with_faults && !queue[position].change && one_in(12)) {
            const parcel again = queue[position];
            queue.insert(queue.begin() + static_cast<std::ptrdiff_t>(position), again);
        }
        all_.deliver(from, to, position);
    }
    void fault(rank_t rank) {
        rank_state& of = all_.at(rank);
        const auto living =
            std::count_if(all_.ranks.begin(), all_.ranks.end(), [](const auto& r) { return !r.is_dead; });
        if (of.is_dead) return begin_anew(rank);
        if (one_in(3) && living > 1) return all_.die(rank);
        const rank_t other = any();
        if (of.is_newcomer || other == rank) return;
        const auto change = one_in(2) ? peer_change::silent : peer_change::recovered;
        all_.tell(rank,
                  {.happened = what::changed, .peer = other, .change = change, .incarnation = all_.at(other).life});
    }
    void begin_anew(rank_t rank) {
        rank_state& of = all_.at(rank);
        of.is_dead = false;
        of.is_newcomer = true;
        ++of.life;
        for (rank_t other = 0; other < all_.size(); ++other) {
            // A rank that died meanwhile is told to have ended when the newcomer asks for it.
            if (other != rank && all_.at(other).is_dead)
                all_.link(other, rank).push_back({peer_change::ended, {}, all_.at(other).life});
            if (other != rank && !all_.at(other).is_dead)
                all_.link(rank, other).push_back({peer_change::arrived, {}, of.life});
        }
    }
    void ask_to_join(rank_t rank) {
        const rank_t to = any();
        agreement_message asks;
        asks.kind = agreement_message::what::join;
        asks.joins = {{rank, all_.at(rank).life}};
        if (to != rank && !all_.at(to).is_dead) all_.link(rank, to).push_back({std::nullopt, asks, all_.at(rank).life});
    }

    bool lacks_a_member(rank_t rank) {
        const agreement_machine& own = all_.at(rank).machine;
        const rill::view& of = own.view();
        for (std::size_t i = 0; i < of.members.size(); ++i) {
            rank_state& other = all_.at(of.members[i]);
            if (other.is_dead || other.is_newcomer || other.life != of.incarnations[i]) return true;
            const bool has_left = other.machine.is_frozen() && other.machine.view().epoch == of.epoch;
            if (has_left || other.machine.view().epoch > of.epoch) return true;
        }
        return false;
    }
    void heal() {
        for (rank_t rank = 0; rank < all_.size(); ++rank)
            for (rank_t other = 0; other < all_.size(); ++other)
                if (rank != other && !all_.at(other).is_dead && !all_.at(rank).is_dead)
                    all_.link(other, rank).push_back({peer_change::recovered, {}, all_.at(other).life});
    }
    bool is_quiet() {
        if (!nothing_is_under_way()) return false;
        for (rank_t rank = 0; rank < all_.size(); ++rank) {
            const rank_state& of = all_.at(rank);
            if (of.is_newcomer && is_a_member(rank)) return false;
            if (of.is_dead || of.is_newcomer || of.machine.is_excluded()) continue;
            if (of.machine.is_frozen() || all_.may_commit(rank) || lacks_a_member(rank)) return false;
        }
        return true;
    }
    bool is_a_member(rank_t rank) {
        const auto& made = all_.decisions;
        return !made.empty() && world::is_listed(made.rbegin()->second.next, rank, all_.at(rank).life);
    }
    /// Whether the members that live are a quorum of the newest view that any of them knows. A later one may have been
    /// decided, of which all have died that have heard of it.
    bool has_quorum() {
        const rill::view* newest = nullptr;
        for (const rank_state& each : all_.ranks) {
            if (each.is_dead || each.is_newcomer || each.machine.is_excluded()) continue;
            if (newest == nullptr || each.machine.view().epoch > newest->epoch) newest = &each.machine.view();
        }
        return newest != nullptr && lives(*newest);
    }
    bool lives(const rill::view& of) {
        std::size_t count = 0;
        bool has_lowest = false;
        for (std::size_t i = 0; i < of.members.size(); ++i) {
            const rank_state& each = all_.at(of.members[i]);
            if (each.is_dead || each.life != of.incarnations[i]) continue;
            ++count;
            has_lowest |= i == 0;
        }
        return 2 * count > of.members.size() || (2 * count == of.members.size() && has_lowest);
    }

    rill::random_sequence draw_;
    world all_;
};

/// RILL_AGREEMENT_RUNS=1000000 explores further.
std::uint64_t courses_in_all() {
    const char* const asked = std::getenv("RILL_AGREEMENT_RUNS");
    if (asked != nullptr) return std::strtoull(asked, nullptr, 10);
#ifdef RILL_TEST_SANITIZED
    return 200;
#else
    return 1000;
#endif
}

}  // namespace

TEST_CASE("three ranks agree, in every order, though one dies at any point") {
    explore(3, {.steps = 1, .deaths = 1});
    explore(3, {.steps = 2, .deaths = 1});
}

TEST_CASE("three ranks agree, in every order, though one dies and one is thought to be lost") {
    explore(3, {.steps = 1, .deaths = 1, .suspicions = 1});
}

TEST_CASE("three ranks agree, in every order, though one dies and messages are late") {
    explore(3, {.steps = 1, .deaths = 1, .hurries = 1});
}

TEST_CASE("three ranks agree, in every order, though two die, where no majority is wanted") {
    explore(3, {.steps = 1, .deaths = 2}, quorum::refused);
}

TEST_CASE("up to seven ranks agree in random courses, though ranks die and come back") {
    std::uint64_t wrong = 0;
    std::string reports;
    for (std::uint64_t seed = 0; seed < courses_in_all(); ++seed) {
        random_course course(seed);
        const std::string what = course.run();
        if (what.empty()) continue;
        ++wrong;
        if (reports.size() < 1000) reports += "course " + std::to_string(seed) + ": " + what + "\n";
    }
    CHECK(reports == "");
    CHECK(random_course::taken_in > 0);
    CHECK(random_course::without_quorum > 0);
    MESSAGE(courses_in_all() << " courses, " << wrong << " wrong: " << random_course::deaths << " deaths, "
                             << random_course::taken_in << " taken in again, " << random_course::decisions
                             << " decisions, " << random_course::commits << " steps, " << random_course::without_quorum
                             << " ended without a quorum");
}

TEST_CASE("no rank waits for ever in three courses that a million random ones have found") {
    // In the first the only rank that knows the latest view is a newcomer, which the others do not list yet. In the
    // second a life ends unnoticed. In the third all ranks that knew the latest view are dead.
    for (const std::uint64_t seed : {321'185U, 903'717U, 148'189U}) {
        CAPTURE(seed);
        CHECK(random_course(seed).run() == "");
    }
}

TEST_CASE("a new coordinator proposes what may have been decided") {
    world all(3, quorum::majority);
    const auto deliver_all = [&](rank_t from, rank_t to) {
        while (!all.link(from, to).empty()) all.deliver(from, to);
    };
    all.tell(0, {.happened = what::changed, .peer = 2, .change = peer_change::ended, .incarnation = first_life});
    all.tell(0, {.happened = what::ends});
    for (int round = 0; round < 2; ++round) deliver_all(0, 1), deliver_all(1, 0);
    CHECK(all.at(0).machine.view().members == std::vector<rank_t>{0, 1});
    all.link(0, 1).clear(), all.link(0, 2).clear();  // nobody hears of the decision
    all.die(0);
    deliver_all(0, 1), deliver_all(0, 2);
    for (int round = 0; round < 3; ++round) deliver_all(1, 2), deliver_all(2, 1);
    CHECK(all.wrong == "");
    CHECK(all.at(1).machine.view().members == std::vector<rank_t>{0, 1});
    CHECK(all.at(2).machine.is_excluded());
}

TEST_CASE("a proposal comes too late where a higher ballot has been answered") {
    world all(3, quorum::majority);
    const auto deliver_all = [&](rank_t from, rank_t to) {
        while (!all.link(from, to).empty()) all.deliver(from, to);
    };
    for (const rank_t rank : {0, 1})
        all.tell(
            rank,
            {.happened = what::changed, .peer = 1 - rank, .change = peer_change::ended, .incarnation = first_life});
    for (const rank_t rank : {0, 1}) {  // each asks rank 2, and takes the other for dead
        all.tell(rank, {.happened = what::ends});
        deliver_all(rank, 2);
        deliver_all(2, rank);
    }
    deliver_all(1, 2);  // the proposal of the higher ballot, then that of the lower one
    deliver_all(0, 2);
    deliver_all(2, 1), deliver_all(2, 0);
    CHECK(all.wrong == "");
    CHECK(all.at(1).machine.view().members == std::vector<rank_t>{1, 2});
    CHECK(all.at(0).machine.view().epoch == 0);
}

TEST_CASE("where all that are reached suffice, an answer of a rank that then falls silent is not waited for") {
    world all(5, quorum::reachable);
    const auto falls_silent = [&](rank_t rank) {
        all.tell(0,
                 {.happened = what::changed, .peer = rank, .change = peer_change::silent, .incarnation = first_life});
    };
    for (const rank_t rank : {2, 3, 4}) falls_silent(rank);
    all.tell(0, {.happened = what::ends});
    all.deliver(0, 1);
    all.deliver(1, 0);  // rank 1 has not noticed yet that it is cut off from ranks 2 to 4
    falls_silent(1);
    CHECK(all.wrong == "");
    CHECK(all.at(0).machine.view().members == std::vector<rank_t>{0});
}

TEST_CASE("a rank that has answered a ballot that it had heard of before notices that its coordinator is lost") {
    world all(3, quorum::majority);
    all.tell(2, {.happened = what::changed, .peer = 0, .change = peer_change::silent, .incarnation = first_life});
    all.tell(2, {.happened = what::changed, .peer = 1, .change = peer_change::silent, .incarnation = first_life});
    all.tell(0, {.happened = what::ends});
    all.tell(2, {.happened = what::ends});
    all.deliver(2, 1);
    all.deliver(0, 1);
    while (!all.link(1, 0).empty()) all.deliver(1, 0);  // it refuses: rank 2 has a higher ballot
    all.deliver(2, 0);
    all.link(0, 1).clear();
    for (const rank_t rank : {0, 1})
        all.tell(rank,
                 {.happened = what::changed, .peer = 2, .change = peer_change::silent, .incarnation = first_life});
    for (int round = 0; round < 3; ++round)
        for (const rank_t rank : {0, 1})
            while (!all.link(rank, 1 - rank).empty()) all.deliver(rank, 1 - rank);
    CHECK(all.wrong == "");
    CHECK(all.now == rill::time_point{});
    CHECK(all.at(0).machine.view().members == std::vector<rank_t>{0, 1});
}

TEST_CASE("members that are newly lost to each other get time to hear each other again, and the decision says if not") {
    for (const bool is_heard_again : {true, false}) {
        CAPTURE(is_heard_again);
        world all(3, quorum::majority);
        const auto settle = [&] {
            all.tell(0, {.happened = what::tick});
            for (int round = 0; round < 4; ++round)
                for (const rank_t other : {1, 2})
                    for (const auto& [from, to] : {std::pair{0, other}, std::pair{other, 0}})
                        while (!all.link(from, to).empty()) all.deliver(from, to);
        };
        const auto told = [&](peer_change change) {
            all.tell(1, {.happened = what::changed, .peer = 2, .change = change, .incarnation = first_life});
        };
        told(peer_change::silent);
        all.tell(0, {.happened = what::ends});
        settle();
        CHECK(all.at(0).machine.view().epoch == 0);
        if (is_heard_again) told(peer_change::recovered);
        all.now = all.now + (is_heard_again ? limits.repeat : limits.patience);
        settle();
        for (const bool again : {false, true}) {
            const agreement_machine& first = all.at(0).machine;
            CHECK(first.view().epoch == (again ? 2 : 1));
            CHECK(first.view().members.size() == 3);
            CHECK(first.last().is_fruitless);
            CHECK(first.last().is_parted == !is_heard_again);
            if (again) break;
            all.tell(0, {.happened = what::ends});
            settle();
        }
        CHECK(all.wrong == "");
    }
}

TEST_CASE("a result that was prepared in an earlier view is not taken for that of a step which was repeated since") {
    constexpr rank_t cut_off = 2;
    world all(3, quorum::majority);
    const auto decide_without_it = [&] {
        const auto deliver_all = [&] {
            for (int round = 0; round < 3; ++round)
                for (const rank_t from : {0, 1})
                    while (!all.link(from, 1 - from).empty()) all.deliver(from, 1 - from);
        };
        all.link(0, cut_off).clear(), all.link(1, cut_off).clear();
        all.tell(0, {.happened = what::ends});
        deliver_all();
        all.now = all.now + limits.patience;
        all.tell(0, {.happened = what::tick});
        deliver_all();
    };
    all.prepare(cut_off);
    decide_without_it();
    CHECK(all.at(0).machine.last().step == 0);
    all.prepare(0), all.prepare(1);
    decide_without_it();
    CHECK(all.at(0).machine.last().step == 1);
    CHECK(all.at(0).machine.view().members.size() == 3);
    for (int round = 0; round < 2; ++round)  // it asks for the whole of a decision that it cannot read
        for (const rank_t other : {0, 1}) {
            while (!all.link(other, cut_off).empty()) all.deliver(other, cut_off);
            while (!all.link(cut_off, other).empty()) all.deliver(cut_off, other);
        }
    CHECK(all.at(cut_off).machine.view().epoch == 2);
    CHECK(all.wrong == "");
}

TEST_CASE("what belongs to another view is answered, and counts for nothing") {
    world all(3, quorum::majority);
    std::vector<parcel> said;  // by rank 0 to rank 1
    const auto end_view = [&] {
        all.tell(0, {.happened = what::ends});
        for (int round = 0; round < 3; ++round)
            for (const rank_t other : {1, 2}) {
                if (other == 1) said.insert(said.end(), all.link(0, 1).begin(), all.link(0, 1).end());
                while (!all.link(0, other).empty()) all.deliver(0, other);
                while (!all.link(other, 0).empty()) all.deliver(other, 0);
            }
    };
    end_view();
    CHECK(all.at(1).machine.view().epoch == 1);
    CHECK(said.size() == 3);  // a question, a proposal, and the decision
    for (const parcel& early : said) {
        all.give(0, 1, early);
        CHECK_FALSE(all.at(1).machine.is_frozen());
    }
    for (const parcel& answer : all.link(1, 0)) CHECK(answer.message.kind == agreement_message::what::decide);
    all.link(1, 0).clear();

    said.clear();
    end_view();
    world behind(3, quorum::majority);
    for (const parcel& late :
         said) {  // also the decision, which says only what changes in a view that rank 1 has missed
        behind.give(0, 1, late);
        CHECK_FALSE(behind.at(1).machine.is_frozen());
        CHECK(behind.link(1, 0).back().message.kind == agreement_message::what::call);
    }
}

TEST_CASE("of two newcomers that ask for one seat one gets it, and the other disturbs nobody") {
    constexpr rank_t seat = 3;
    world all(4, quorum::majority);
    const auto end_view = [&] {
        all.tell(0, {.happened = what::ends});
        for (int round = 0; round < 4; ++round)
            for (rank_t from = 0; from < 4; ++from)
                for (rank_t to = 0; to < seat; ++to)
                    while (!all.link(from, to).empty()) all.deliver(from, to);
    };
    const auto asks = [&](std::uint64_t life, rank_t to) {
        agreement_message asked;
        asked.kind = agreement_message::what::join;
        asked.joins = {{seat, life}};
        all.tell(to, {.happened = what::arrived, .peer = seat, .message = &asked});
    };
    all.die(seat);
    end_view();
    CHECK(all.at(0).machine.view().members == std::vector<rank_t>{0, 1, 2});
    asks(8, 0), asks(9, 1), asks(8, 2);
    end_view();
    const rill::view with_one = all.at(0).machine.view();
    CHECK(with_one.members == std::vector<rank_t>{0, 1, 2, seat});
    for (rank_t rank = 0; rank < seat; ++rank) {
        CHECK(all.at(rank).machine.view() == with_one);
        CHECK_FALSE(all.at(rank).machine.knows_newcomers());
        asks(8, rank), asks(9, rank);
        CHECK_FALSE(all.at(rank).machine.knows_newcomers());
    }
    CHECK(all.wrong == "");
}

TEST_CASE("a life has ended when another one arrives, even if a later view still lists it") {
    world all(3, quorum::majority);
    const auto end_view = [&] {
        all.tell(0, {.happened = what::ends});
        for (int round = 0; round < 4; ++round)
            for (rank_t from = 0; from < 3; ++from)
                for (rank_t to = 0; to < 2; ++to)
                    while (!all.link(from, to).empty()) all.deliver(from, to);
    };
    all.die(2);
    end_view();
    REQUIRE(all.at(1).machine.view().members == std::vector<rank_t>{0, 1});
    for (const std::uint64_t life : {8U, 9U})
        all.tell(1, {.happened = what::changed, .peer = 2, .change = peer_change::arrived, .incarnation = life});
    all.tell(0, {.happened = what::joins, .peer = 2, .incarnation = 8});
    end_view();
    REQUIRE(all.at(1).machine.view().incarnations.back() == 8);
    CHECK(all.at(1).machine.has_dead_member());
    CHECK(all.wrong == "");
}

TEST_CASE("a rank that waits too long for another's ballot misses the other, and not itself") {
    world all(3, quorum::majority);
    all.tell(0, {.happened = what::ends});
    all.now = all.now + (limits.longest - limits.repeat);
    all.tell(1, {.happened = what::changed, .peer = 0, .change = peer_change::silent, .incarnation = first_life});
    all.tell(1, {.happened = what::ends});
    all.deliver(1, 0);
    all.now = all.now + limits.repeat;
    all.tell(0, {.happened = what::tick});
    CHECK(all.at(0).machine.missing() == std::vector<rank_t>{1});
}
