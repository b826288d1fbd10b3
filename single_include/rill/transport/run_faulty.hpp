// rill 0.1.0: <rill/transport/run_faulty.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_RUN_FAULTY_HPP
#define RILL_SINGLE_TRANSPORT_RUN_FAULTY_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/run_faulty.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/run_faulty.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_TRANSPORT_FAULT_PLAN_HPP
#define RILL_SINGLE_TRANSPORT_FAULT_PLAN_HPP

// ===== rill/transport/fault_plan.hpp

namespace rill::inline RILL_ABI {

/// Any rank, where a fault asks for one.
inline constexpr rank_t any_rank = -2;

/// One thing that goes wrong, or right again, in a network. Faults are of the messages between ranks: abort notices and
/// what ranks say of the calls that they have entered get through all but a killed rank.
struct fault {
    enum class what : std::uint8_t {
        loss,       ///< messages from `from` to `to` are lost, each with the probability `amount`
        duplicate,  ///< they arrive twice, each with the probability `amount`
        delay,      ///< they take up to `longest` longer, uniformly; a link still keeps their order
        reorder,    ///< each waits, with the probability `amount`, until one of another sender has overtaken it
        cut,        ///< the link from `from` to `to` loses everything
        heal,       ///< it works again
        kill,       ///< `from` ends without a word: see `rank_killed`
        restart,    ///< `from`, once killed, begins anew, `begins` after its end
        slow        ///< computing takes `from` `amount` times as long
    };

    what kind = what::loss;
    rank_t from = any_rank;
    rank_t to = any_rank;
    bool both_ways = false;     ///< and from `to` to `from`
    double amount = 0;          ///< a probability, or a factor
    duration longest{};         ///< of a delay; how long a message waits at most to be overtaken
    duration begins{};          ///< not before this time since the start of the run
    std::uint64_t skipped = 0;  ///< and not before so many messages: on the link; posted by the rank in this life

    /// The same at or after a time.
    constexpr fault at(duration time) const { return with(&fault::begins, time); }
    /// The same after so many messages of the link, in each direction; of `kill` and `slow`, posted by the rank.
    constexpr fault after(std::uint64_t messages) const { return with(&fault::skipped, messages); }
    /// The same between these two ranks alone, in this direction.
    constexpr fault on(rank_t source, rank_t receiver) const {
        return with(&fault::from, source).with(&fault::to, receiver);
    }
    /// The same between these two ranks alone, in both directions.
    constexpr fault between(rank_t one, rank_t other) const { return on(one, other).with(&fault::both_ways, true); }

    /// Whether it is of messages, rather than of a rank.
    constexpr bool is_of_messages() const { return kind < what::kill; }
    constexpr bool is_of_link(rank_t source, rank_t receiver) const {
        return leads(source, receiver) || (both_ways && leads(receiver, source));
    }
    /// At the `number`-th message from 1.
    constexpr bool has_begun(duration now, std::uint64_t number) const { return now >= begins && number > skipped; }

    friend bool operator==(const fault&, const fault&) = default;

  private:
    constexpr bool leads(rank_t one, rank_t other) const {
        return (from == any_rank || from == one) && (to == any_rank || to == other);
    }
    template <class T>
    constexpr fault with(T fault::*member, T value) const {
        fault changed = *this;
        changed.*member = value;
        return changed;
    }
};

/// The faults that a plan is made of.
namespace faults {

/// Each message is lost with this probability.
constexpr fault lose(double probability) { return {.kind = fault::what::loss, .amount = probability}; }
/// Each message arrives twice with this probability.
constexpr fault duplicate(double probability) { return {.kind = fault::what::duplicate, .amount = probability}; }
/// Each message takes longer, uniformly up to this.
constexpr fault delay_up_to(duration longest) { return {.kind = fault::what::delay, .longest = longest}; }
/// Each message waits with this probability until one of another sender has overtaken it, at most so long.
constexpr fault reorder(double probability, duration longest) {
    return {.kind = fault::what::reorder, .amount = probability, .longest = longest};
}
/// A directed link loses everything, until it is healed.
constexpr fault cut(rank_t from, rank_t to) { return {.kind = fault::what::cut, .from = from, .to = to}; }
/// Nothing gets through between two ranks, until it is healed.
constexpr fault cut_between(rank_t one, rank_t other) { return cut(one, other).between(one, other); }
/// A link that was cut works again.
constexpr fault heal(rank_t from, rank_t to) { return {.kind = fault::what::heal, .from = from, .to = to}; }
/// Both links between two ranks work again.
constexpr fault heal_between(rank_t one, rank_t other) { return heal(one, other).between(one, other); }
/// A rank ends without a word.
constexpr fault kill(rank_t rank) { return {.kind = fault::what::kill, .from = rank}; }
/// A killed rank begins anew, as long after its end as `at` says.
constexpr fault restart(rank_t rank) { return {.kind = fault::what::restart, .from = rank}; }
/// Computing takes a rank `factor` times as long.
constexpr fault slow(rank_t rank, double factor) { return {.kind = fault::what::slow, .from = rank, .amount = factor}; }

}  // namespace faults

/// What goes wrong in a run, in the order of the list: of a cut and a heal of one link, the later one that has begun
/// counts. A rank's first kill ends its first life, its second the life after its first restart, and so on. The same
/// plan in the same network makes the same run. `to_string` prints it, `parse_fault_plan` reads that.
struct fault_plan {
    std::vector<fault> faults;
    std::uint64_t seed = 0;  ///< of everything that has a probability

    bool empty() const { return faults.empty(); }
    friend bool operator==(const fault_plan&, const fault_plan&) = default;
};

/// Leaves the body of a rank whose end is planned, from its next call of the transport. Not derived from anything, so
/// that a body that handles errors does not take it for one; who catches it with `...` gets it again at the next call.
struct rank_killed {
    rank_t rank = no_rank;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_FAULT_PLAN_HPP

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_FAULT_JUDGE_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_FAULT_JUDGE_HPP

// ===== rill/transport/detail/fault_judge.hpp

namespace rill::inline RILL_ABI::detail {

/// Why a fault means nothing among so many ranks, or null.
inline const char* trouble_with(const fault& f, int ranks) {
    const auto exists = [&](rank_t rank) { return 0 <= rank && rank < ranks; };
    const auto may_be = [&](rank_t rank) { return rank == any_rank || exists(rank); };
    if (!may_be(f.from) || !may_be(f.to)) return "fault_plan: a fault of a rank that is not there";
    if (f.begins.ns < 0 || f.longest.ns < 0) return "fault_plan: a time below 0";
    switch (f.kind) {
        case fault::what::loss:
        case fault::what::duplicate:
        case fault::what::reorder:
            return 0 <= f.amount && f.amount <= 1 ? nullptr : "fault_plan: a probability is between 0 and 1";
        case fault::what::slow:
            return f.amount >= 0 && std::isfinite(f.amount) ? nullptr
                                                            : "fault_plan: a factor is finite, and not below 0";
        case fault::what::restart:
            if (f.skipped != 0) return "fault_plan: a rank begins anew after a time, not after messages";
            [[fallthrough]];
        case fault::what::kill:
            return exists(f.from) ? nullptr : "fault_plan: a rank's end or beginning names the rank";
        default: return nullptr;
    }
}

/// What a plan says of a message, or of a rank, at a time. It has no memory: the same question has the same answer.
class fault_judge {
  public:
    fault_judge(fault_plan plan, int ranks) : plan_(std::move(plan)) {
        for (const fault& f : plan_.faults) {
            [[maybe_unused]] const char* const trouble = trouble_with(f, ranks);
            RILL_EXPECTS(trouble == nullptr, trouble);
            concerns_messages_ |= f.is_of_messages();
            reorders_ |= f.kind == fault::what::reorder;
        }
    }

    const fault_plan& plan() const { return plan_; }
    bool is_idle() const { return plan_.empty(); }
    /// Otherwise `of_message` has nothing to say.
    bool concerns_messages() const { return concerns_messages_; }
    bool reorders() const { return reorders_; }

    struct verdict {
        bool lost = false;
        bool twice = false;
        duration late{};
        duration held{};  ///< to be overtaken, at most so long
    };

    /// Of the `number`-th message of a link, from 1.
    verdict of_message(rank_t source, rank_t receiver, std::uint64_t number, duration now) const {
        verdict all;
        bool is_cut = false;
        for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
            const fault& f = plan_.faults[i];
            if (!f.is_of_messages() || !f.is_of_link(source, receiver) || !f.has_begun(now, number)) continue;
            const double u = draw(i, source, receiver, number);
            switch (f.kind) {
                case fault::what::loss: all.lost |= u < f.amount; break;
                case fault::what::duplicate: all.twice |= u < f.amount; break;
                case fault::what::delay:
                    all.late = all.late + duration(static_cast<std::int64_t>(u * static_cast<double>(f.longest.ns)));
                    break;
                case fault::what::reorder:
                    if (u < f.amount) all.held = std::max(all.held, f.longest);
                    break;
                case fault::what::cut: is_cut = true; break;
                case fault::what::heal: is_cut = false; break;
                default: break;
            }
        }
        all.lost |= is_cut;
        return all;
    }

    /// The kill that ends a rank's life, its first being 0.
    const fault* end_of(rank_t rank, std::uint64_t life) const { return of_life(fault::what::kill, rank, life); }
    /// What begins the life after that.
    const fault* restart_after(rank_t rank, std::uint64_t life) const {
        return of_life(fault::what::restart, rank, life);
    }

    /// Of a rank that has posted so many messages.
    double slowness(rank_t rank, duration now, std::uint64_t posted) const {
        double factor = 1;
        for (const fault& f : plan_.faults)
            if (f.kind == fault::what::slow && (f.from == any_rank || f.from == rank) && f.has_begun(now, posted + 1))
                factor = f.amount;
        return factor;
    }

  private:
    const fault* of_life(fault::what kind, rank_t rank, std::uint64_t life) const {
        for (const fault& f : plan_.faults)
            if (f.kind == kind && f.from == rank && life-- == 0) return &f;
        return nullptr;
    }

    /// In [0, 1).
    double draw(std::size_t i, rank_t source, rank_t receiver, std::uint64_t number) const {
        const std::uint64_t bits =
            mix64(plan_.seed, i, static_cast<unsigned>(source), static_cast<unsigned>(receiver), number);
        return static_cast<double>(bits >> 11U) * 0x1p-53;
    }

    fault_plan plan_;
    bool concerns_messages_ = false;
    bool reorders_ = false;
};

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_FAULT_JUDGE_HPP

#ifndef RILL_SINGLE_TRANSPORT_FAULT_SCENE_HPP
#define RILL_SINGLE_TRANSPORT_FAULT_SCENE_HPP

// ===== rill/transport/fault_scene.hpp

namespace rill::inline RILL_ABI {

/// A plan of faults as it comes about among the `faulty` transports of one process, which share it; made before the
/// ranks begin. Safe to use from all of them at once. Memory: two numbers for each pair of ranks.
class fault_scene {
  public:
    fault_scene(int ranks, fault_plan plan)
        : size_(at_least_one(ranks)),
          judge_(std::move(plan), ranks),
          ranks_(new rank_state[static_cast<std::size_t>(ranks)]),
          links_(new link_state[static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)]) {}

    int size() const { return size_; }
    const fault_plan& plan() const { return judge_.plan(); }
    bool is_alive(rank_t rank) const { return !at(rank).is_dead.load(std::memory_order_acquire); }
    /// How often a rank has begun anew.
    int restarts(rank_t rank) const { return static_cast<int>(life(rank)); }
    /// How many messages of a link have been lost.
    std::uint64_t lost(rank_t source, rank_t receiver) const {
        return between(source, receiver).lost.load(std::memory_order_relaxed);
    }

    /// Whether the plan ends a rank's present life.
    bool is_mortal(rank_t rank) const { return judge_.end_of(rank, life(rank)) != nullptr; }
    /// When its present life ends by time alone; `deadline::never` when it does not.
    deadline end_of(rank_t rank, time_point start) const {
        const fault* const end = judge_.end_of(rank, life(rank));
        return end == nullptr || end->skipped != 0 ? deadline::never : deadline(start + end->begins);
    }
    /// Ends a rank's life in place of its next message where the plan says so. True when it is dead.
    bool is_dead_before_post(rank_t rank, duration now) {
        const std::uint64_t number = at(rank).posted.fetch_add(1, std::memory_order_relaxed) + 1;
        const fault* const end = judge_.end_of(rank, life(rank));
        if (end != nullptr && end->has_begun(now, number)) kill(rank);
        return !is_alive(rank);
    }
    void kill(rank_t rank) { at(rank).is_dead.store(true, std::memory_order_release); }

    /// How long after its end a killed rank begins anew, if it does.
    const fault* restart_of(rank_t rank) const { return judge_.restart_after(rank, life(rank)); }
    void revive(rank_t rank) {
        rank_state& own = at(rank);
        own.life.fetch_add(1, std::memory_order_relaxed);
        own.posted.store(0, std::memory_order_relaxed);
        own.is_dead.store(false, std::memory_order_release);
    }

    double slowness(rank_t rank, duration now) const {
        return judge_.slowness(rank, now, at(rank).posted.load(std::memory_order_relaxed));
    }

    /// What happens to the next message of a link.
    detail::fault_judge::verdict judge(rank_t source, rank_t receiver, duration now) {
        link_state& link = between(source, receiver);
        const std::uint64_t number = link.posted.fetch_add(1, std::memory_order_relaxed) + 1;
        auto verdict = judge_.of_message(source, receiver, number, now);
        verdict.lost |= !is_alive(receiver);
        if (verdict.lost) link.lost.fetch_add(1, std::memory_order_relaxed);
        return verdict;
    }

    bool reorders() const { return judge_.reorders(); }
    /// How long the next message that a rank takes from another is to be overtaken at most.
    duration holds(rank_t source, rank_t receiver, duration now) const {
        const std::uint64_t taken = between(source, receiver).taken.load(std::memory_order_relaxed);
        return judge_.of_message(source, receiver, taken + 1, now).held;
    }
    void taken(rank_t source, rank_t receiver) {
        between(source, receiver).taken.fetch_add(1, std::memory_order_relaxed);
    }

  private:
    using counter = std::atomic<std::uint64_t>;
    struct rank_state {
        std::atomic<bool> is_dead{false};
        counter life{0};
        counter posted{0};  ///< in this life
    };
    struct link_state {
        counter posted{0};
        counter lost{0};
        counter taken{0};
    };

    static int at_least_one(int ranks) {
        RILL_EXPECTS(ranks >= 1, "fault_scene: needs at least one rank");
        return ranks;
    }

    rank_state& at(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
    std::uint64_t life(rank_t rank) const { return at(rank).life.load(std::memory_order_relaxed); }
    link_state& between(rank_t source, rank_t receiver) const {
        return links_[static_cast<std::size_t>(source) * static_cast<std::size_t>(size_) +
                      static_cast<std::size_t>(receiver)];
    }

    int size_;
    detail::fault_judge judge_;
    std::unique_ptr<rank_state[]> ranks_;
    std::unique_ptr<link_state[]> links_;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_FAULT_SCENE_HPP

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_FAULTY_CONCURRENCY_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_FAULTY_CONCURRENCY_HPP

// ===== rill/transport/detail/faulty_concurrency.hpp

namespace rill::inline RILL_ABI {

template <Transport Net>
class faulty;

namespace detail {

/// What a faulty transport offers only where the inner one does; who waits within a rank dies with it.
template <class Net>
struct faulty_concurrency {};

template <ConcurrentTransport Net>
struct faulty_concurrency<Net> {
    using activity = typename Net::activity;

    class event {
      public:
        explicit event(faulty<Net>& net) : net_(&net), inner_(net.inner()) {}

        void set() { inner_.set(); }
        void reset() { inner_.reset(); }
        bool wait(deadline until) {
            return net_->alive_through(until, [&](deadline at) { return inner_.wait(at); });
        }

      private:
        faulty<Net>* net_;
        typename Net::event inner_;
    };

    template <class T>
    class queue {
      public:
        explicit queue(faulty<Net>& net) : net_(&net), inner_(net.inner()) {}

        void push(T value) { inner_.push(std::move(value)); }
        std::optional<T> pop(deadline until) {
            return net_->alive_through(until, [&](deadline at) { return inner_.pop(at); });
        }
        void close() { inner_.close(); }

      private:
        faulty<Net>* net_;
        typename Net::template queue<T> inner_;
    };
};

}  // namespace detail
}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_FAULTY_CONCURRENCY_HPP

#ifndef RILL_SINGLE_TRANSPORT_FAULTY_HPP
#define RILL_SINGLE_TRANSPORT_FAULTY_HPP

// ===== rill/transport/faulty.hpp

namespace rill::inline RILL_ABI {

/// A transport among threads on which things go wrong as planned, as they do in a simulated network: what is tested
/// there can be seen among real threads. Models what the inner one models; without faults it is as the inner one.
///
/// Times of the plan count from `start`. A message that is late keeps its sender, who waits with it. One that is to be
/// overtaken is passed over by a receive from any of several ranks until another has come. `slow` is of `compute`,
/// where the inner transport has it. A killed rank gets `rank_killed` from its next call, or in the middle of a wait;
/// `run_faulty` catches that, and begins the rank anew where the plan says so. What had been sent to it and not taken
/// it then still finds.
template <Transport Net>
class faulty : public detail::faulty_concurrency<Net> {
  public:
    using message = typename Net::message;
    class sending;

    /// `scene` is the same for all ranks.
    faulty(Net& inner, fault_scene& scene, time_point start) : inner_(&inner), scene_(&scene), start_(start) {
        RILL_EXPECTS(scene.size() == inner.size(), "faulty: the scene is for another number of ranks");
    }
    faulty(const faulty&) = delete;
    faulty& operator=(const faulty&) = delete;

    Net& inner() const { return *inner_; }
    const fault_scene& scene() const { return *scene_; }

    rank_t rank() const { return std::as_const(*inner_).rank(); }
    int size() const { return std::as_const(*inner_).size(); }
    time_point now() const { return std::as_const(*inner_).now(); }
    traffic counted() const { return std::as_const(*inner_).counted(); }
    /// How often this rank has been killed and begun anew.
    int restarts() const { return scene_->restarts(rank()); }

    void sleep_until(time_point instant) {
        alive_through(instant, [&](deadline at) { return inner_->sleep_until(at.at), false; });
    }
    /// As long as the inner transport takes, times the factor of a slow rank.
    void compute(double work)
        requires requires(Net& net) { net.compute(work); }
    {
        live();
        inner_->compute(work * scene_->slowness(rank(), now() - start_));
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        const auto fate = fate_of_message(peer);
        if (fate.lost) return sending(*this, on.context);
        sending posted(*this, inner_->post(peer, on, pieces));
        if (fate.twice) inner_->post(peer, on, joined(pieces));
        return posted;
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        const auto fate = fate_of_message(peer);
        if (fate.lost) return buffer().swap(bytes), true;
        buffer copy = fate.twice ? bytes : buffer();
        const bool taken =
            alive_through(until, [&](deadline at) { return inner_->post(peer, on, std::move(bytes), at); });
        if (taken && fate.twice) inner_->post(peer, on, std::move(copy));
        return taken;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return took(alive_through(until, [&](deadline at) { return inner_->receive(peer, on, at); }));
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        if (scene_->reorders() && peers.size() > 1)
            if (auto overtaking = receive_overtaking(peers, on, until)) return took(std::move(overtaking));
        return took(alive_through(until, [&](deadline at) { return inner_->receive(peers, on, at); }));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        return took(alive_through(until, [&](deadline at) { return inner_->receive_latest(peers, on, at); }));
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        const bool came =
            alive_through(until, [&](deadline at) { return inner_->receive_into(peer, on, targets, at); });
        if (came) scene_->taken(peer, rank());
        return came;
    }

    void announce(std::uint64_t context, const call_signature& call) {
        live();
        inner_->announce(context, call);
    }
    /// A dead rank answers nothing, whatever it had entered.
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        return alive_through(until, [&](deadline at) -> std::optional<call_signature> {
            auto entered = inner_->inquire(peer, context, number, at);
            if (entered && !scene_->is_alive(peer)) wait_in_vain(context, at), entered.reset();
            return entered;
        });
    }
    /// Nobody hears a dead rank.
    abort_notice abort(const abort_notice& notice) { return scene_->is_alive(rank()) ? inner_->abort(notice) : notice; }
    std::optional<abort_notice> aborted(std::uint64_t context) { return inner_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) {
        live();
        return inner_->next_context(key);
    }
    void close(std::uint64_t context) { inner_->close(context); }

    const void* this_activity() const
        requires requires(const Net& net) { net.this_activity(); }
    {
        return std::as_const(*inner_).this_activity();
    }
    bool activities_run_alone() const
        requires requires(const Net& net) { net.activities_run_alone(); }
    {
        return std::as_const(*inner_).activities_run_alone();
    }

    template <class Body>
    auto spawn(Body body)
        requires ConcurrentTransport<Net>
    {
        return inner_->spawn(std::move(body));
    }

  private:
    friend detail::faulty_concurrency<Net>;

    /// Throws when this rank is dead, or dies now.
    void live() const {
        if (now() >= scene_->end_of(rank(), start_).at) scene_->kill(rank());
        if (!scene_->is_alive(rank())) throw rank_killed{rank()};
    }

    /// Waits by turns, for the end of this rank may come in the middle, by the clock or from another of its activities.
    template <class Wait>
    auto alive_through(deadline until, Wait&& wait) -> decltype(wait(until)) {
        live();
        if (until.is_immediate() || !scene_->is_mortal(rank())) return wait(until);
        while (true) {
            const deadline turn = std::min({until, scene_->end_of(rank(), start_), deadline(now() + milliseconds(2))});
            auto seen = wait(turn);
            live();
            if (seen || turn == until || now() < turn.at) return seen;  // a closed queue ends a wait early
        }
    }

    /// Until then, or until the context ends: on a channel that nobody uses.
    void wait_in_vain(std::uint64_t context, deadline until) const {
        constexpr std::uint32_t of_nobody = 0xFFFF'FFFE;
        inner_->receive(rank(), {.context = context, .tag = of_nobody}, until);
    }

    detail::fault_judge::verdict fate_of_message(rank_t peer) {
        live();
        const duration since = now() - start_;
        if (scene_->is_dead_before_post(rank(), since)) throw rank_killed{rank()};
        if (peer == rank()) return {};
        const auto fate = scene_->judge(rank(), peer, since);
        if (fate.late.ns > 0) sleep_until(now() + fate.late);
        return fate;
    }

    /// A message that comes before those that are to be overtaken, if one does in time. One rank at least overtakes.
    std::optional<message> receive_overtaking(std::span<const rank_t> peers, channel on, deadline until) {
        std::vector<rank_t> faster;
        duration longest{};
        for (const rank_t peer : peers) {
            const duration held = scene_->holds(peer, rank(), now() - start_);
            const bool is_last_hope = faster.empty() && peer == peers.back();
            if (held.ns == 0 || is_last_hope) faster.push_back(peer);
            longest = std::max(longest, held);
        }
        if (longest.ns == 0) return std::nullopt;
        const deadline patience = std::min(until, deadline(now() + longest));
        return alive_through(patience, [&](deadline at) { return inner_->receive(faster, on, at); });
    }

    std::optional<message> took(std::optional<message>&& received) {
        if (received) scene_->taken(received->source(), rank());
        return std::move(received);
    }

    static buffer joined(const byte_pieces& pieces) {
        buffer all;
        for (const byte_view piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
        return all;
    }

    Net* inner_;
    fault_scene* scene_;
    time_point start_;
};

/// A borrowed send under way. One that was lost is never done.
template <Transport Net>
class faulty<Net>::sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept
        : net_(std::exchange(other.net_, nullptr)),
          lost_in_(std::exchange(other.lost_in_, std::nullopt)),
          inner_(std::move(other.inner_)) {}
    sending& operator=(sending&& other) noexcept {
        sending moved(std::move(other));
        std::swap(net_, moved.net_);
        std::swap(lost_in_, moved.lost_in_);
        std::swap(inner_, moved.inner_);
        return *this;
    }

    bool done() { return !lost_in_ && inner_.done(); }
    bool wait(deadline until) {
        if (net_ == nullptr) return true;
        return net_->alive_through(until, [&](deadline at) {
            if (!lost_in_) return inner_.wait(at);
            net_->wait_in_vain(*lost_in_, at);
            return false;
        });
    }
    void settle() noexcept {
        if (!lost_in_) inner_.settle();
    }

  private:
    friend faulty;
    sending(faulty& net, typename Net::sending&& posted) : net_(&net), inner_(std::move(posted)) {}
    sending(faulty& net, std::uint64_t lost_in) : net_(&net), lost_in_(lost_in) {}

    faulty* net_ = nullptr;
    std::optional<std::uint64_t> lost_in_;
    typename Net::sending inner_;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_FAULTY_HPP

// ===== rill/transport/run_faulty.hpp

namespace rill::inline RILL_ABI {

/// Calls `body(faulty&)` on a rank of `inner`; when the plan ends its life, waits until the plan begins the next one
/// and calls it again, or returns. Example:
///
///     fault_scene scene(ranks, parse_fault_plan("kill rank 2 after 3"));
///     in_process::run(ranks, [&](auto& inner) { run_faulty(inner, scene, body); });
template <Transport Net, class Body>
void run_faulty(Net& inner, fault_scene& scene, Body&& body) {
    const time_point start = inner.now();
    faulty<Net> net(inner, scene, start);
    while (true) {
        try {
            body(net);
            return;
        } catch (const rank_killed&) {
            const fault* const again = scene.restart_of(inner.rank());
            if (again == nullptr) return;
            inner.sleep_until(inner.now() + again->begins);
            scene.revive(inner.rank());
        }
    }
}

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_RUN_FAULTY_HPP
