#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/coordinated_kind.hpp>
#include <rill/protocol/detail/machine_loop.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How long the ranks of a gossip with a coordinator wait, and how many rounds they make.
struct coordinated_limits {
    duration timeout{};        ///< for the peer's values
    duration patience{};       ///< for a worker's report
    std::uint64_t rounds = 0;  ///< 0: until no worker is left
    double link_weight = 0;    ///< of an exchange's speed in that of its link
    bool measures = false;     ///< whether workers measure how long they wait for their peers
};

/// The coordinator of a gossip; a state machine for `run_machine`. It knows who works, and no models.
///
/// It waits until all workers have joined, or `patience` has passed. In each round it tells each worker its peer, and
/// waits for all reports. A worker that has ended or does not report in time is *out*, and the round goes on without
/// it. An exchange counts if both ends report that they have the values; the order of the next round says so. A worker
/// that repeats its report has not heard that order, and is told again.
///
/// At the end it stays until all workers have heard of it, or `patience` has passed.
///
/// Workers join and leave between rounds. A newcomer gets the model of a worker that goes on, of one that no other
/// newcomer has. `Bound`: the mixing; where it has `attend(rank, bool)`, it is told who works, and where it has
/// `observe(rank, rank, bytes_per_second, weight)`, how fast ranks have exchanged, if that is measured.
template <class Bound>
class coordinator_machine {
  public:
    /// The workers are the ranks `first … size-1`.
    coordinator_machine(Bound mixing, rank_t first, int size, random_key key, const coordinated_limits& limits)
        : mixing_(std::move(mixing)),
          key_(key),
          limits_(limits),
          first_(first),
          workers_(static_cast<std::size_t>(size)) {
        ranks_.resize(static_cast<std::size_t>(size - first));
        std::iota(ranks_.begin(), ranks_.end(), first);
    }

    /// Before it begins: so many rounds have been made.
    void resume_at(std::uint64_t round) { round_ = round; }
    machine_action begin(time_point now) {
        since_ = now;
        if (ranks_.empty()) end(now);
        return next(now);
    }
    machine_action on(const machine_event& event, time_point now) {
        using what = machine_event::what;
        if (event.happened == what::arrived) take(event);
        if (event.happened == what::nothing_came) give_up(now);
        proceed(now);
        return next(now);
    }

    std::span<const rank_t> neighbours(segment) const { return ranks_; }
    /// What the worker is told now.
    round_order order_of(rank_t rank) const {
        const worker& each = at(rank);
        return {.round = round_,
                .seed = static_cast<std::uint32_t>(key_.derive(round_).value >> 32U),
                .peer = each.peer,
                .other = each.other,
                .commits = each.commits,
                .joins = each.joins};
    }
    std::uint64_t round() const { return round_; }
    bool is_over() const { return phase_ == phase::over; }
    const Bound& mixing() const { return mixing_; }

    /// Calls `visit` with each number that the next actions depend on.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const worker& each : workers_) {
            for (const rank_t rank : {each.peer, each.other}) visit(rank);
            for (const bool flag : {each.needs_model, each.told.has_values, each.commits, each.has_left}) visit(flag);
            visit(static_cast<int>(each.is)), visit(each.joins), visit(each.since.ns);
        }
        for (const letter& each : letters_) visit(each.to), visit(each.kind.number);
        visit(letters_.size()), visit(static_cast<int>(phase_)), visit(round_), visit(since_.ns);
    }

  private:
    enum class phase : unsigned char { gathering, under_way, over };
    /// `told`: that the run is over.
    enum class state : unsigned char { absent, joining, works, reported, out, told };
    struct worker {
        state is = state::absent;
        std::uint32_t joins = 0;
        time_point since{};  ///< it has its order
        rank_t peer = no_rank;
        rank_t other = no_rank;  ///< who gets its model, or whose model it gets
        bool needs_model = false;
        round_report told{};
        bool commits = false;
        bool has_left = false;  ///< or ended
    };
    struct letter {
        rank_t to;
        message_kind kind;
    };

    worker& at(rank_t rank) { return workers_[static_cast<std::size_t>(rank)]; }
    const worker& at(rank_t rank) const { return workers_[static_cast<std::size_t>(rank)]; }
    bool any(state is) const {
        return std::any_of(ranks_.begin(), ranks_.end(), [&](rank_t rank) { return at(rank).is == is; });
    }

    void take(const machine_event& event) {
        const message_kind kind = event.head.kind;
        worker& from = at(event.peer);
        if (kind == coordinated_kind::ended) from = {.has_left = true};
        if (kind == coordinated_kind::join) take_join(event.peer, event.head);
        if (kind == coordinated_kind::report) take_report(event.peer, event.head);
        if (kind == coordinated_kind::leave && event.head.number == from.joins)
            from = {.joins = from.joins, .has_left = true};
        if (kind == coordinated_kind::heard && from.is == state::told) from.is = state::absent;
    }
    void take_join(rank_t rank, const wire::header& head) {
        worker& from = at(rank);
        if (head.number < from.joins || (head.number == from.joins && from.is == state::absent)) return;
        if (head.number == from.joins) return repeat(rank);
        from = {.is = state::joining, .joins = static_cast<std::uint32_t>(head.number), .needs_model = head.weight > 0};
        if (phase_ == phase::over) tell_over(rank);
    }
    void take_report(rank_t rank, const wire::header& head) {
        worker& from = at(rank);
        if (from.is == state::works && head.number == round_) {
            from.is = state::reported;
            from.told = round_report::of(head);
        } else if (head.number + 1 == round_ || from.is == state::out) {
            repeat(rank);
        }
    }
    /// It has not heard what it was told last.
    void repeat(rank_t rank) {
        const state is = at(rank).is;
        if (is == state::works) letters_.push_back({rank, coordinated_kind::begin});
        if (is == state::told) letters_.push_back({rank, coordinated_kind::over});
        if (is == state::out) letters_.push_back({rank, coordinated_kind::out});
    }

    /// Nothing has come in time.
    void give_up(time_point now) {
        for (const rank_t rank : ranks_) {
            worker& each = at(rank);
            const bool is_missing = phase_ == phase::gathering && each.is == state::absent && !each.has_left &&
                                    now >= since_ + limits_.patience;
            const bool is_late = each.is == state::works && now >= each.since + limits_.patience;
            if (is_missing) each = {.is = state::out, .joins = 1};
            if (!is_late) continue;
            each = {.is = state::out, .joins = each.joins};
            letters_.push_back({rank, coordinated_kind::out});
        }
        if (phase_ == phase::over && now >= since_ + limits_.patience)
            for (const rank_t rank : ranks_) at(rank).is = state::absent;
    }

    void proceed(time_point now) {
        const auto is_awaited = [&](rank_t rank) { return at(rank).is == state::absent && !at(rank).has_left; };
        if (phase_ == phase::gathering && std::none_of(ranks_.begin(), ranks_.end(), is_awaited)) {
            phase_ = phase::under_way;
            if (limits_.rounds > 0 && round_ >= limits_.rounds)
                end(now);
            else
                begin_round(now);
        }
        while (phase_ == phase::under_way && !any(state::works)) {
            judge();
            ++round_;
            if (round_ == limits_.rounds || !(any(state::reported) || any(state::joining)))
                end(now);
            else
                begin_round(now);
        }
    }
    void judge() {
        for (const rank_t rank : ranks_) {
            worker& each = at(rank);
            each.commits = false;
            if (each.peer == no_rank || at(each.peer).peer != rank) continue;
            if (each.is != state::reported || at(each.peer).is != state::reported) continue;
            each.commits = each.told.has_values && at(each.peer).told.has_values;
            if (rank < each.peer) measure(rank, each.peer);
        }
    }
    /// Two ranks have exchanged, or have waited for each other in vain. One begins before the other; but what one waits
    /// longer for that, the other waits less, so that the sum is the time of both messages, whatever their clocks say.
    void measure(rank_t rank, rank_t peer) {
        if constexpr (requires { mixing_.observe(rank, peer, 1.0, 1.0); }) {
            const round_report &one = at(rank).told, &other = at(peer).told;
            if (one.waited.ns <= 0 || other.waited.ns <= 0 || one.bytes + other.bytes == 0) return;
            const double bytes = static_cast<double>(one.bytes + other.bytes);
            mixing_.observe(rank, peer, bytes / (one.waited + other.waited).seconds(), limits_.link_weight);
        }
    }

    void begin_round(time_point now) {
        for (const rank_t rank : ranks_) at(rank).other = no_rank;
        for (const rank_t rank : ranks_)
            if (at(rank).is == state::joining && (!at(rank).needs_model || give_model(rank)))
                at(rank).is = state::works;
        for (const rank_t rank : ranks_) {
            if (at(rank).is == state::reported) at(rank).is = state::works;
            if constexpr (requires { mixing_.attend(rank, true); }) mixing_.attend(rank, works(rank));
        }
        if constexpr (requires { mixing_.attend(rank_t{}, true); })
            for (rank_t rank = 0; rank < first_; ++rank) mixing_.attend(rank, false);
        for (const rank_t rank : ranks_)
            if (works(rank)) order(rank, now);
        if (!any(state::works)) end(now);
    }
    bool works(rank_t rank) const { return at(rank).is == state::works; }
    bool give_model(rank_t newcomer) {
        for (const rank_t rank : ranks_) {
            worker& each = at(rank);
            if (each.is != state::reported || each.other != no_rank) continue;
            each.other = newcomer;
            at(newcomer).other = rank;
            return true;
        }
        return false;
    }
    void order(rank_t rank, time_point now) {
        worker& each = at(rank);
        mixing_.fill(round_, rank, row_);
        require_pair(row_, rank);
        each.peer = row_.senders.empty() ? no_rank : row_.senders.front().peer;
        if (each.peer != no_rank && (each.peer < first_ || !works(each.peer))) each.peer = no_rank;
        each.told = {};
        each.since = now;
        letters_.push_back({rank, coordinated_kind::begin});
    }

    /// A rank's row is one of a pair that exchanges half and half, or of a rank that mixes with nobody.
    void require_pair(const mixing_row& row, rank_t rank) const {
        if (row.senders.empty() && row.receivers.empty()) return;
        const bool is_pair = row.senders.size() == 1 && row.receivers.size() == 1 &&
                             row.receivers.front() == row.senders.front().peer && row.own_weight == 0.5 &&
                             row.senders.front().weight == 0.5 && row.senders.front().peer >= 0 &&
                             row.senders.front().peer < static_cast<rank_t>(workers_.size());
        if (is_pair) return;
        throw contract_violation(text_of({"rill: gossip (round ", round_, "): the mixing does not give rank ", rank,
                                          " one peer with half of the weight, as a coordinator needs; use "
                                          "topology::bandwidth_matching or random_matching"}));
    }

    void end(time_point now) {
        phase_ = phase::over;
        since_ = now;
        for (const rank_t rank : ranks_)
            if (at(rank).is == state::reported || at(rank).is == state::joining) tell_over(rank);
    }
    void tell_over(rank_t rank) {
        at(rank).is = state::told;
        letters_.push_back({rank, coordinated_kind::over});
    }

    /// What finds no room is lost; the worker repeats its report.
    machine_action next(time_point now) {
        using ask = machine_action::ask;
        if (!letters_.empty()) {
            const letter each = letters_.front();
            letters_.erase(letters_.begin());
            return {.what = ask::send, .peer = each.to, .kind = each.kind, .number = round_, .until = now};
        }
        if (phase_ == phase::over && !any(state::told)) return {};
        return {.what = ask::receive, .until = until()};
    }
    deadline until() const {
        if (phase_ == phase::gathering) return since_ + limits_.patience;
        if (phase_ == phase::over) return since_ + limits_.patience;
        time_point first = deadline::never.at;
        for (const rank_t rank : ranks_)
            if (works(rank)) first = std::min(first, at(rank).since + limits_.patience);
        return first;
    }

    Bound mixing_;
    random_key key_;
    coordinated_limits limits_;
    rank_t first_;
    std::vector<rank_t> ranks_{};
    std::vector<worker> workers_;
    std::vector<letter> letters_{};
    mixing_row row_{};
    phase phase_ = phase::gathering;
    std::uint64_t round_ = 0;
    time_point since_{};  ///< it began, or the run is over
};

}}}  // namespace rill::RILL_ABI::detail
