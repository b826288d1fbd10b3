#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/state_note.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A note that is to be sent. The bytes belong to the machine, until its next call.
struct state_letter {
    rank_t to;
    state_note note;
    byte_view bytes{};
};

/// What members of a job and a rank that joins must have alike, and how the state is cut into messages.
struct state_transfer_options {
    std::uint64_t build = 0;                 ///< hash of version and layout of the state
    std::size_t catch_up_bytes = 64U << 20;  ///< of the latest updates, which a member keeps
    std::uint64_t snapshot_every = 1;        ///< snapshots are taken at multiples of it: then members have the same
    std::size_t piece_bytes = 64U << 10;     ///< of a message
    std::size_t window = 4;                  ///< pieces that are under way at a time
    duration patience = seconds(1);          ///< how long a rank waits for one member
};

/// The side of a member: gives its state to those that join, a piece for each that is asked for. A state machine
/// without I/O and clock: each call may leave letters to be sent.
///
/// The member tells it each step that it has committed. Where `is_snapshot_due` says so, it then gives a copy of its
/// state. A snapshot serves all that ask, as long as the updates after it are kept.
class state_provider {
  public:
    explicit state_provider(const state_transfer_options& chosen) : options_(chosen) {}

    void members_are(const rill::view& now) { view_ = now; }

    /// A step has been committed, with the update that leads to it. Where that of the step before is not the latest
    /// one kept (the rank has loaded a state), all that are kept are forgotten.
    void committed(std::uint64_t step, buffer update) {
        if (step != latest_ + 1) forget();
        kept_bytes_ += update.size();
        updates_.push_back({step, rill::checksum(update), std::move(update)});
        latest_ = step;
        while (kept_bytes_ > options_.catch_up_bytes) {
            kept_bytes_ -= updates_.front().bytes.size();
            updates_.pop_front();
        }
        if (snapshot_ && (!is_asked_for_ || !is_followed_by_updates(*snapshot_))) snapshot_.reset();
        answer_waiting(state_note::item::update);
    }
    /// The rank has loaded the state at a step.
    void resume_at(std::uint64_t step) {
        forget();
        snapshot_.reset();
        latest_ = step;
    }

    /// Whether somebody waits for a snapshot.
    bool is_snapshot_wanted() const {
        return !snapshot_ && std::any_of(waiting_.begin(), waiting_.end(), [](const pending& each) {
            return each.note.of == state_note::item::snapshot;
        });
    }
    /// Whether a copy of the state is to be taken at the step that has been committed last.
    bool is_snapshot_due() const { return is_snapshot_wanted() && latest_ % options_.snapshot_every == 0; }
    /// A copy of the state at the step that has been committed last. One that nobody asks for goes with the next step.
    void take_snapshot(std::uint64_t step, buffer state) {
        if (snapshot_ || step != latest_) return;  // one is there, or the rank has gone on
        snapshot_ = item{latest_, rill::checksum(state), std::move(state)};
        is_asked_for_ = false;
        answer_waiting(state_note::item::snapshot);
    }

    /// `life`: the incarnation of the seat `from`, as the transport tells.
    void on(rank_t from, const state_note& note, std::uint64_t life) {
        if (note.kind != state_note::what::want) return;
        using why = state_note::why;
        if (note.epoch > view_.epoch) return refuse(from, note, why::old_epoch);
        if (note.incarnation != life)
            return refuse(from, note, is_member(from, life) ? why::taken_seat : why::old_life);
        if (note.build != options_.build) return refuse(from, note, why::other_build);
        if (note.of == state_note::item::snapshot) return give_snapshot(from, note);
        if (note.step > latest_) return wait(from, note);
        if (const item* const update = find(note.step)) return give(from, note, *update);
        refuse(from, note, why::not_kept);
    }
    /// The rank has ended.
    void lost(rank_t rank) {
        std::erase_if(waiting_, [&](const pending& each) { return each.from == rank; });
    }

    /// What is to be sent, in order.
    const std::vector<state_letter>& letters() const { return letters_; }
    void clear_letters() { letters_.clear(); }

    /// Calls `visit` with each number that the next letters depend on.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        visit(latest_), visit(updates_.size()), visit(view_.epoch);
        visit(snapshot_ ? snapshot_->step : ~std::uint64_t{0}), visit(snapshot_ && is_asked_for_);
        for (const pending& each : waiting_) visit(each.from), visit(each.note.of), visit(each.note.step);
    }

  private:
    struct item {
        std::uint64_t step;
        std::uint64_t checksum;
        buffer bytes;
    };
    struct pending {
        rank_t from;
        state_note note;
    };

    bool is_member(rank_t rank, std::uint64_t life) const {
        const auto found = std::lower_bound(view_.members.begin(), view_.members.end(), rank);
        if (found == view_.members.end() || *found != rank) return false;
        const auto at = static_cast<std::size_t>(found - view_.members.begin());
        return at >= view_.incarnations.size() || view_.incarnations[at] == life;
    }
    void forget() {
        updates_.clear();
        kept_bytes_ = 0;
    }
    const item* find(std::uint64_t step) const {
        if (updates_.empty() || step < updates_.front().step || step > updates_.back().step) return nullptr;
        return &updates_[static_cast<std::size_t>(step - updates_.front().step)];
    }
    /// Whether who has it can get from it to the latest step.
    bool is_followed_by_updates(const item& snapshot) const {
        return snapshot.step == latest_ || find(snapshot.step + 1) != nullptr;
    }

    void give_snapshot(rank_t from, const state_note& note) {
        if (!snapshot_) return wait(from, note);
        is_asked_for_ = true;
        const bool goes_on = note.step == snapshot_->step && note.checksum == snapshot_->checksum;
        state_note asked = note;
        if (!goes_on && note.length != 0) asked.offset = 0, asked.length = options_.piece_bytes * options_.window;
        give(from, asked, *snapshot_);
    }
    void wait(rank_t from, const state_note& note) {
        const auto is_same = [&](const pending& each) {
            return each.from == from && each.note.of == note.of &&
                   (note.of == state_note::item::snapshot || each.note.step == note.step);
        };
        std::erase_if(waiting_, is_same);
        waiting_.push_back({from, note});
        refuse(from, note, state_note::why::later);
    }
    void answer_waiting(state_note::item of) {
        std::vector<pending> due;
        const auto is_due = [&](const pending& each) {
            return each.note.of == of && (of == state_note::item::snapshot || each.note.step <= latest_);
        };
        std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(due), is_due);
        std::erase_if(waiting_, is_due);
        for (const pending& each : due) {
            if (of == state_note::item::snapshot)
                give_snapshot(each.from, each.note);
            else if (const item* const update = find(each.note.step))
                give(each.from, each.note, *update);
            else
                refuse(each.from, each.note, state_note::why::not_kept);
        }
    }

    state_note answer(const state_note& to, state_note::what kind) const {
        state_note note = to;
        note.kind = kind;
        note.epoch = view_.epoch;
        note.latest = latest_;
        return note;
    }
    void refuse(rank_t to, const state_note& asked, state_note::why reason) {
        state_note note = answer(asked, state_note::what::refusal);
        note.reason = reason;
        letters_.push_back({to, note});
    }
    /// Sends at least one piece, also of an empty item.
    void give(rank_t to, const state_note& asked, const item& from) {
        if (asked.length == 0) return;
        state_note note = answer(asked, state_note::what::piece);
        note.step = from.step, note.checksum = from.checksum, note.size = from.bytes.size();
        const std::uint64_t first = std::min<std::uint64_t>(asked.offset, note.size);
        const std::uint64_t end = first + std::min(asked.length, note.size - first);
        note.offset = first;
        do {
            note.length = std::min<std::uint64_t>(options_.piece_bytes, end - note.offset);
            letters_.push_back({to, note, byte_view(from.bytes).subspan(note.offset, note.length)});
            note.offset += note.length;
        } while (note.offset < end);
    }

    state_transfer_options options_;
    rill::view view_{};
    std::uint64_t latest_ = 0;
    std::size_t kept_bytes_ = 0;
    std::deque<item> updates_;  ///< of consecutive steps
    std::optional<item> snapshot_;
    bool is_asked_for_ = false;  ///< the snapshot
    std::vector<pending> waiting_;
    std::vector<state_letter> letters_;
};

/// The side of a rank that joins, or that missed steps: gets a snapshot if it needs one, then the updates that follow
/// it, in order. A state machine without I/O and clock: each call may leave letters to be sent, and returns what to do.
///
/// One member is asked at a time. Where it ends, refuses because its view is old, or does not answer in time, the next
/// one goes on at the first byte that is missing; if that has a snapshot of another step, it begins anew. An item is
/// handed out only when it is there as a whole and its checksum is right.
class state_fetcher {
  public:
    enum class task : unsigned char {
        nothing,
        replace,  ///< load `item()`, the state at `step()`; then call `done` or, if it does not fit, `refused`
        apply,    ///< apply `item()`, the update that leads to `step()`; then call `done`
        fail      ///< for `reason()`, because of `culprit()`; `why::none`: nobody is left who answers
    };

    /// `providers`: nearest first. `have`: the step of a state that this rank has, or nothing.
    state_fetcher(const state_transfer_options& chosen, std::uint64_t incarnation, std::uint32_t epoch,
                  std::vector<rank_t> providers, std::optional<std::uint64_t> have)
        : options_(chosen),
          incarnation_(incarnation),
          epoch_(epoch),
          providers_(std::move(providers)),
          have_(have),
          latest_(have.value_or(0)) {}

    task begin(time_point now) {
        now_ = now;
        if (providers_.empty()) return fail(state_note::why::none, no_rank);
        // A second member takes a snapshot of the same step, so that it can go on if the first one ends.
        if (!have_ && providers_.size() > 1) want(providers_[1], state_note::item::snapshot, 0, 0, 0);
        return ask_anew();
    }
    task on(rank_t from, const state_note& note, byte_view bytes, time_point now) {
        now_ = now;
        if (has_failed_ || note.kind == state_note::what::want || note.incarnation != incarnation_)
            return task::nothing;
        if (note.epoch < epoch_) return from == provider() ? go_on_with_next() : task::nothing;
        epoch_ = note.epoch;
        latest_ = std::max(latest_, note.latest);
        if (note.kind == state_note::what::piece) return take_piece(from, note, bytes);
        return from == provider() ? take_refusal(note) : task::nothing;
    }
    /// `item()` has been loaded or applied.
    task done(time_point now) {
        now_ = now;
        if (needs_snapshot()) asked_until_ = item_.step;
        have_ = item_.step;
        item_ = {};
        return progress();
    }
    /// `item()` cannot be loaded.
    task refused() { return fail(state_note::why::other_build, provider()); }
    /// The rank has ended.
    task lost(rank_t rank, time_point now) {
        now_ = now;
        const auto at = std::find(providers_.begin(), providers_.end(), rank);
        if (has_failed_ || at == providers_.end()) return task::nothing;
        const auto place = static_cast<std::size_t>(at - providers_.begin());
        providers_.erase(at);
        if (providers_.empty()) return fail(state_note::why::none, rank);
        if (place > turn_) return task::nothing;
        if (place < turn_) {
            --turn_;
            return task::nothing;
        }
        turn_ %= providers_.size();
        return ask_anew();
    }
    /// Call it when `until()` has passed.
    task tick(time_point now) {
        now_ = now;
        if (has_failed_ || now < until_) return task::nothing;
        return is_put_off_ ? ask_anew() : go_on_with_next();
    }

    time_point until() const { return until_; }
    /// The step of this rank's state.
    std::optional<std::uint64_t> have() const { return have_; }
    /// Whether this rank's state is at most one step behind, as far as it has been told.
    bool is_ready() const { return have_ && has_heard_ && *have_ + 1 >= latest_; }
    byte_view item() const { return item_.bytes; }
    std::uint64_t step() const { return item_.step; }
    state_note::why reason() const { return reason_; }
    rank_t culprit() const { return culprit_; }

    const std::vector<state_letter>& letters() const { return letters_; }
    void clear_letters() { letters_.clear(); }

    /// Calls `visit` with each number that the next actions depend on.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        visit(have_.value_or(~std::uint64_t{0})), visit(latest_), visit(epoch_), visit(turn_), visit(tries_);
        visit(item_.step), visit(item_.checksum), visit(item_.bytes.size()), visit(asked_), visit(asked_until_);
        visit(until_.ns), visit(providers_.size());
        for (const rank_t each : providers_) visit(each);
        for (const bool flag : {is_put_off_, has_heard_, has_failed_, item_.is_known}) visit(flag);
    }

  private:
    static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

    struct partial_item {
        std::uint64_t step = 0;
        std::uint64_t checksum = 0;
        std::uint64_t size = 0;
        bool is_known = false;  ///< which item it is
        buffer bytes{};
    };

    rank_t provider() const { return providers_[turn_]; }
    bool needs_snapshot() const { return !have_; }

    void want(rank_t from, state_note::item of, std::uint64_t step, std::uint64_t offset, std::uint64_t length) {
        const bool is_of_item = item_.is_known && step == item_.step;
        letters_.push_back({from,
                            {.of = of,
                             .epoch = epoch_,
                             .incarnation = incarnation_,
                             .build = options_.build,
                             .step = step,
                             .checksum = is_of_item ? item_.checksum : 0,
                             .offset = offset,
                             .length = length,
                             .latest = have_.value_or(0)}});
    }
    /// Asks for as much as may be under way.
    task ask() {
        if (!needs_snapshot()) {
            const std::uint64_t next = *have_ + 1, last = *have_ + options_.window;
            while (asked_until_ < std::min(last, std::max(latest_, next))) {
                ++asked_until_;
                want(provider(), state_note::item::update, asked_until_, asked_until_ == next ? item_.bytes.size() : 0,
                     all);
            }
        } else if (item_.is_known) {
            const std::uint64_t end = std::min<std::uint64_t>(item_.size, item_.bytes.size() + in_flight());
            for (; asked_ < end; asked_ += options_.piece_bytes)
                want(provider(), state_note::item::snapshot, item_.step, asked_, options_.piece_bytes);
        }
        return task::nothing;
    }
    /// Asks the provider, from the first missing byte on.
    task ask_anew() {
        is_put_off_ = false;
        until_ = now_ + options_.patience;
        if (needs_snapshot()) {
            want(provider(), state_note::item::snapshot, item_.step, item_.bytes.size(), in_flight());
            asked_ = item_.bytes.size() + in_flight();
        } else {
            asked_until_ = *have_;
        }
        return ask();
    }
    std::uint64_t in_flight() const { return options_.piece_bytes * options_.window; }

    task go_on_with_next() {
        if (++tries_ > 2 * providers_.size()) return fail(state_note::why::none, provider());
        turn_ = (turn_ + 1) % providers_.size();
        return ask_anew();
    }
    task progress() {
        tries_ = 0;
        is_put_off_ = false;
        until_ = now_ + options_.patience;
        return ask();
    }
    task fail(state_note::why reason, rank_t culprit) {
        has_failed_ = true;
        until_ = deadline::never.at;
        reason_ = reason;
        culprit_ = culprit;
        return task::fail;
    }

    task take_refusal(const state_note& note) {
        using why = state_note::why;
        has_heard_ = true;
        switch (note.reason) {
            case why::none: return task::nothing;
            case why::later:
                tries_ = 0;
                is_put_off_ = true;
                until_ = now_ + options_.patience;
                return task::nothing;
            case why::not_kept:
                if (needs_snapshot() || note.step != *have_ + 1) return task::nothing;
                have_.reset();
                item_ = {};
                return ask_anew();
            case why::old_epoch: return go_on_with_next();
            case why::other_build:
            case why::old_life:
            case why::taken_seat: break;
        }
        return fail(note.reason, provider());
    }

    task take_piece(rank_t from, const state_note& note, byte_view bytes) {
        const bool is_wanted = needs_snapshot() ? note.of == state_note::item::snapshot
                                                : note.of == state_note::item::update && note.step == *have_ + 1;
        if (!is_wanted) return task::nothing;
        has_heard_ = true;
        const bool is_same =
            item_.is_known && note.step == item_.step && note.checksum == item_.checksum && note.size == item_.size;
        if (!is_same) {  // another one, or the first piece of all
            if (from != provider() || note.offset != 0) return task::nothing;
            item_ = {note.step, note.checksum, note.size, true};
            asked_ = in_flight();
        }
        if (note.offset != item_.bytes.size()) return task::nothing;
        item_.bytes.append(bytes.begin(), bytes.end());
        if (item_.bytes.size() < item_.size) return progress();
        if (rill::checksum(item_.bytes) == item_.checksum) return needs_snapshot() ? task::replace : task::apply;
        item_ = {};
        return go_on_with_next();
    }

    state_transfer_options options_;
    std::uint64_t incarnation_;
    std::uint32_t epoch_;
    std::vector<rank_t> providers_;
    std::optional<std::uint64_t> have_;
    std::uint64_t latest_;
    std::size_t turn_ = 0;   ///< which provider is asked
    std::size_t tries_ = 0;  ///< how many have been asked in vain since the last progress
    partial_item item_{};
    std::uint64_t asked_ = 0;        ///< up to which byte of the snapshot
    std::uint64_t asked_until_ = 0;  ///< up to which update
    bool is_put_off_ = false;        ///< the provider has said `later`
    bool has_heard_ = false;
    bool has_failed_ = false;
    state_note::why reason_ = state_note::why::none;
    rank_t culprit_ = no_rank;
    time_point now_{};
    time_point until_{};
    std::vector<state_letter> letters_;
};

}}}  // namespace rill::RILL_ABI::detail
