#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/call.hpp>
#include <rill/topology/rank_sets.hpp>

#include <cstddef>
#include <vector>

namespace rill::inline RILL_ABI::topology {

/// What a proof found: nothing, or the first defect.
struct verdict {
    bool ok = true;
    int round = -1;           ///< -1: before the first, or after the last
    rank_t rank = no_rank;    ///< the rank at which it shows
    const char* what = "ok";  ///< complete sentence

    constexpr explicit operator bool() const { return ok; }
};

/// What a topology promises besides the result.
struct promises {
    bool rank_order = false;  ///< `preserves_rank_order`
    bool copy_phase = false;  ///< `has_copy_phase`
};

/// What must come about: a collective among `size` ranks.
struct obligation {
    operation what = operation::all_reduce;
    int size = 1;
    rank_t root = 0;
    promises promised{};
};

/// Follows every contribution through the schedules of all ranks, in lockstep.
///
/// Keeps, for each rank and part, the set of ranks whose contribution is in it: O(P²·parts) bits and time proportional
/// to the parts that are sent.
template <Schedule S>
class follower {
  public:
    /// `schedule_of(rank)` gives the schedule of each rank.
    template <class ScheduleOf>
    constexpr follower(const obligation& aim, const ScheduleOf& schedule_of) : aim_(aim) {
        for (rank_t r = 0; r < aim.size; ++r) schedules_.push_back(schedule_of(r));
    }

    constexpr verdict run() {
        if (check_shape() && check_parts()) {
            start();
            bool sound = true;
            for (int round = 0; sound && round < schedules_[0].rounds(); ++round) sound = step(round);
            if (sound) check_end();
        }
        return verdict_;
    }

  private:
    /// A message on its way: what it carries is the sets `first_set …` of `payload_`, one for each part.
    struct message {
        transfer from{};
        std::size_t first_set = 0;
    };

    constexpr bool refuse(int round, rank_t rank, const char* what) {
        verdict_ = {false, round, rank, what};
        return false;
    }
    constexpr const S& schedule(rank_t rank) const { return schedules_[static_cast<std::size_t>(rank)]; }
    constexpr std::size_t cell(rank_t rank, int part) const {
        return static_cast<std::size_t>(rank) * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(part);
    }
    constexpr bool is_rooted() const { return aim_.what == operation::reduce || aim_.what == operation::broadcast; }
    constexpr bool only_copies() const {
        return aim_.what == operation::all_gather || aim_.what == operation::broadcast;
    }

    // What each rank has at first and must have at last.

    constexpr bool starts_with(rank_t rank, int part) const {
        if (aim_.what == operation::all_gather) return rank == part;
        return aim_.what != operation::broadcast || rank == aim_.root;
    }
    constexpr bool must_have(rank_t rank, int part) const {
        if (aim_.what == operation::reduce_scatter) return rank == part;
        return aim_.what != operation::reduce || rank == aim_.root;
    }
    constexpr bool is_complete(rank_set_view set, int part) const {
        if (!only_copies()) return are_equal(set, everyone_[0]);
        return contains(set, aim_.what == operation::broadcast ? aim_.root : part);
    }

    constexpr bool check_shape() {
        if (aim_.size < 1) return refuse(-1, no_rank, "a group has at least one rank");
        if (aim_.root < 0 || aim_.root >= aim_.size) return refuse(-1, aim_.root, "the root is outside the group");
        return true;
    }
    constexpr bool check_parts() {
        parts_ = schedules_[0].parts();
        const bool by_rank = aim_.what == operation::reduce_scatter || aim_.what == operation::all_gather;
        if (by_rank && parts_ != aim_.size) return refuse(-1, 0, "there must be one part for each rank");
        if (parts_ < 1) return refuse(-1, 0, "there must be at least one part");
        for (rank_t r = 1; r < aim_.size; ++r) {
            if (schedule(r).parts() != parts_) return refuse(-1, r, "the ranks disagree on the number of parts");
            if (schedule(r).rounds() != schedules_[0].rounds())
                return refuse(-1, r, "the ranks disagree on the number of rounds");
        }
        return true;
    }

    constexpr void start() {
        const std::size_t cells = cell(aim_.size, 0);
        everyone_ = rank_sets(1, aim_.size);
        has_ = rank_sets(cells, aim_.size);
        knows_ = rank_sets(static_cast<std::size_t>(aim_.size), aim_.size);
        payload_ = rank_sets(0, aim_.size);
        received_in_ = std::vector<int>(cells, -1);
        was_copied_ = std::vector<char>(cells, char{0});
        is_unused_ = std::vector<char>(cells, char{0});
        finished_by_ = std::vector<rank_t>(static_cast<std::size_t>(parts_), no_rank);
        for (rank_t r = 0; r < aim_.size; ++r) {
            insert(everyone_[0], r);
            for (int part = 0; part < parts_; ++part)
                if (starts_with(r, part)) insert(has_[cell(r, part)], r);
        }
        for (rank_t r = 0; r < aim_.size; ++r) learn_own(r);
    }

    /// All sends are taken as they are before the round; then every rank applies what it receives.
    constexpr bool step(int round) {
        messages_.clear();
        payload_.clear();
        int sent = 0;
        for (rank_t r = 0; r < aim_.size; ++r) {
            if (!check_sends(round, r) || !check_receives(round, r)) return false;
            sent += schedule(r).sends(round);
        }
        for (rank_t r = 0; r < aim_.size; ++r)
            for (int i = 0; i < schedule(r).receives(round); ++i)
                if (!carry(round, r, i)) return false;
        if (static_cast<std::size_t>(sent) != messages_.size()) return blame_unreceived(round);
        std::size_t first = 0;
        for (rank_t r = 0; r < aim_.size; ++r) {
            const auto count = static_cast<std::size_t>(schedule(r).receives(round));
            if (!apply(round, r, first, count)) return false;
            first += count;
        }
        return true;
    }

    // The transfers of a round by themselves.

    constexpr bool check_transfer(int round, rank_t rank, transfer t) {
        if (t.peer < 0 || t.peer >= aim_.size) return refuse(round, rank, "a peer is outside the group");
        if (t.peer == rank) return refuse(round, rank, "a rank sends to itself");
        if (t.parts == part_range{}) {
            const bool notice = is_rooted() && schedule(rank).kind(round) == action::copy;
            return notice || refuse(round, rank, "a transfer carries no parts, and the operation needs no notice");
        }
        if (t.parts.first < 0 || t.parts.last > parts_ || t.parts.count() < 1)
            return refuse(round, rank, "a range of parts is not inside [0, parts())");
        return true;
    }
    constexpr bool check_sends(int round, rank_t rank) {
        for (int i = 0; i < schedule(rank).sends(round); ++i) {
            const transfer t = schedule(rank).send(round, i);
            if (!check_transfer(round, rank, t)) return false;
            for (int part = t.parts.first; part < t.parts.last; ++part) is_unused_[cell(rank, part)] = 0;
        }
        return true;
    }
    constexpr bool check_receives(int round, rank_t rank) {
        const S& s = schedule(rank);
        bool all_same = s.kind(round) == action::fold;
        rank_t before = no_rank;
        for (int i = 0; i < s.receives(round); ++i) {
            const transfer t = s.receive(round, i);
            if (!check_transfer(round, rank, t)) return false;
            if (t.peer < before) return refuse(round, rank, "receives are not in ascending order of peers");
            before = t.peer;
            all_same = all_same && t.parts == s.receive(round, 0).parts;
        }
        for (int i = 0; !all_same && i < s.receives(round); ++i)
            if (!mark_received(round, rank, s.receive(round, i).parts)) return false;
        return true;
    }
    constexpr bool mark_received(int round, rank_t rank, part_range parts) {
        for (int part = parts.first; part < parts.last; ++part) {
            int& last = received_in_[cell(rank, part)];
            if (last == round) return refuse(round, rank, "parts received in one round overlap");
            last = round;
        }
        return true;
    }

    // Sends and receives in pairs.

    /// Position of receive (or send) `i` among those of the same peer.
    template <class At>
    static constexpr int occurrence(const At& at, int i) {
        int before = 0;
        for (int j = 0; j < i; ++j) before += at(j).peer == at(i).peer ? 1 : 0;
        return before;
    }
    /// Index of the `nth` transfer of `count` whose peer is `peer`; -1 when there is none.
    template <class At>
    static constexpr int find(const At& at, int count, rank_t peer, int nth) {
        for (int i = 0; i < count; ++i)
            if (at(i).peer == peer && nth-- == 0) return i;
        return -1;
    }

    constexpr bool carry(int round, rank_t rank, int i) {
        const auto receive = [&](int j) { return schedule(rank).receive(round, j); };
        const transfer t = receive(i);
        const S& sender = schedule(t.peer);
        const auto send = [&](int j) { return sender.send(round, j); };
        const int j = find(send, sender.sends(round), rank, occurrence(receive, i));
        if (j < 0) return refuse(round, rank, "a receive has no send in its round");
        if (send(j).parts != t.parts) return refuse(round, rank, "a receive expects other parts than are sent");
        if (sender.kind(round) != schedule(rank).kind(round))
            return refuse(round, rank, "one end of a message folds, the other copies");
        messages_.push_back({t, payload_.count()});
        payload_.push(knows_[static_cast<std::size_t>(t.peer)]);
        for (int part = t.parts.first; part < t.parts.last; ++part) payload_.push(has_[cell(t.peer, part)]);
        return true;
    }
    constexpr bool blame_unreceived(int round) {
        for (rank_t r = 0; r < aim_.size; ++r) {
            const auto send = [&](int j) { return schedule(r).send(round, j); };
            for (int i = 0; i < schedule(r).sends(round); ++i) {
                const S& peer = schedule(send(i).peer);
                const auto receive = [&](int j) { return peer.receive(round, j); };
                if (find(receive, peer.receives(round), r, occurrence(send, i)) < 0)
                    return refuse(round, r, "a send has no receive in its round");
            }
        }
        return refuse(round, no_rank, "sends and receives differ in number");
    }

    // What a rank does with the messages `first … first+count-1` of a round.

    constexpr rank_set_view carried(const message& m, int part) const {
        return payload_[m.first_set + 1 + static_cast<std::size_t>(part - m.from.parts.first)];
    }

    constexpr bool apply(int round, rank_t rank, std::size_t first, std::size_t count) {
        if (count == 0) return true;
        const part_range range = messages_[first].from.parts;
        const bool folds = schedule(rank).kind(round) == action::fold;
        const bool same = folds && (count == 1 || messages_[first + 1].from.parts == range);
        if (same) {
            for (int part = range.first; part < range.last; ++part)
                if (!fold(round, rank, part, first, count)) return false;
        } else {
            for (std::size_t i = first; i < first + count; ++i)
                if (!apply_alone(round, rank, i, folds)) return false;
        }
        learn_own(rank);
        return true;
    }
    constexpr bool apply_alone(int round, rank_t rank, std::size_t i, bool folds) {
        const message& m = messages_[i];
        for (int part = m.from.parts.first; part < m.from.parts.last; ++part)
            if (folds ? !fold(round, rank, part, i, 1) : !copy(round, rank, part, m)) return false;
        const bool news = join(knows_[static_cast<std::size_t>(rank)], payload_[m.first_set]);
        if (m.from.parts.count() == 0 && !news) return refuse(round, rank, "a notice tells nothing new");
        return true;
    }

    /// The k-way fold of one part: all messages in ascending order of ranks, what the rank has at its own place.
    constexpr bool fold(int round, rank_t rank, int part, std::size_t first, std::size_t count) {
        if (only_copies()) return refuse(round, rank, "the operation folds nothing");
        const std::size_t here = cell(rank, part);
        if (was_copied_[here] != 0) return refuse(round, rank, "a part is folded after it was copied");
        rank_t last = no_rank;
        std::size_t i = first;
        for (; i < first + count && messages_[i].from.peer < rank; ++i)
            if (!follows(round, rank, last, carried(messages_[i], part))) return false;
        if (!follows(round, rank, last, has_[here])) return false;
        for (; i < first + count; ++i)
            if (!follows(round, rank, last, carried(messages_[i], part))) return false;
        for (i = first; i < first + count; ++i) {
            const rank_set_view more = carried(messages_[i], part);
            if (is_empty(more)) return refuse(round, rank, "a part is folded that the sender does not have");
            if (!are_disjoint(has_[here], more)) return refuse(round, rank, "a contribution is folded twice");
            join(has_[here], more);
        }
        is_unused_[here] = 1;
        return check_owner(round, rank, part);
    }
    constexpr bool follows(int round, rank_t rank, rank_t& last, rank_set_view next) {
        if (is_empty(next) || !aim_.promised.rank_order) return true;
        if (smallest(next) < last) return refuse(round, rank, "a fold does not keep the order of ranks");
        last = largest(next);
        return true;
    }
    /// With a copy phase, one rank alone finishes a part.
    constexpr bool check_owner(int round, rank_t rank, int part) {
        if (!aim_.promised.copy_phase || !is_complete(has_[cell(rank, part)], part)) return true;
        rank_t& owner = finished_by_[static_cast<std::size_t>(part)];
        if (owner != no_rank) return refuse(round, rank, "two ranks finish a part: there is no copy phase");
        owner = rank;
        return true;
    }

    constexpr bool copy(int round, rank_t rank, int part, const message& m) {
        const std::size_t here = cell(rank, part);
        const rank_set_view more = carried(m, part);
        if (aim_.what == operation::reduce) return refuse(round, rank, "a reduction copies no parts");
        if (!is_larger(more, has_[here]))
            return refuse(round, rank, "a copy brings nothing new, or less than it replaces");
        if (aim_.promised.copy_phase && !is_complete(more, part))
            return refuse(round, rank, "a part is copied before it is finished");
        join(has_[here], more);
        was_copied_[here] = 1;
        is_unused_[here] = 1;
        return true;
    }

    // Rooted operations: who knows which ranks have what they must have.

    constexpr void learn_own(rank_t rank) {
        if (!is_rooted()) return;
        for (int part = 0; part < parts_; ++part)
            if (!must_have(rank, part) || !is_complete(has_[cell(rank, part)], part)) return;
        insert(knows_[static_cast<std::size_t>(rank)], rank);
    }

    constexpr bool check_end() {
        for (rank_t r = 0; r < aim_.size; ++r) {
            for (int part = 0; part < parts_; ++part) {
                if (must_have(r, part)) {
                    if (!is_complete(has_[cell(r, part)], part)) return refuse(-1, r, "a contribution is missing");
                } else if (is_unused_[cell(r, part)] != 0) {
                    return refuse(-1, r, "a rank receives a part that it neither needs nor sends on");
                }
            }
            if (aim_.what == operation::reduce && !contains(knows_[static_cast<std::size_t>(r)], aim_.root))
                return refuse(-1, r, "a rank is not told that the root has finished");
        }
        if (aim_.what == operation::broadcast && !are_equal(knows_[static_cast<std::size_t>(aim_.root)], everyone_[0]))
            return refuse(-1, aim_.root, "the root is not told that all ranks have finished");
        return true;
    }

    obligation aim_;
    verdict verdict_{};
    std::vector<S> schedules_{};
    int parts_ = 0;

    rank_sets everyone_{};               // one set: all ranks
    rank_sets has_{};                    // (rank, part): whose contributions are in it
    rank_sets knows_{};                  // rank: who is known to have finished
    std::vector<int> received_in_{};     // (rank, part): the last round in which it came
    std::vector<char> was_copied_{};     // (rank, part)
    std::vector<char> is_unused_{};      // (rank, part): came and was not sent since
    std::vector<rank_t> finished_by_{};  // part: who folded the last contribution into it
    std::vector<message> messages_{};    // of this round, by receiver
    rank_sets payload_{};                // of each message: what the sender knows, then a set for each part
};

}  // namespace rill::inline RILL_ABI::topology
