#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/call.hpp>
#include <rill/topology/rank_sets.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// What a proof found: nothing, or the first defect.
struct verdict {
    bool ok = true;
    int round = -1;           ///< -1: before the first, or after the last
    rank_t rank = no_rank;    ///< the rank at which it shows
    const char* what = "ok";  ///< complete sentence

    constexpr explicit operator bool() const { return ok; }
};

/// What a topology promises in addition to the result.
struct promises {
    bool rank_order = false;  ///< `preserves_rank_order`
    bool copy_phase = false;  ///< `has_copy_phase`
    bool owners = false;      ///< `folds_at_owners`
};

/// What the schedules must achieve: a collective among `size` ranks.
struct obligation {
    operation what = operation::all_reduce;
    int size = 1;
    rank_t root = 0;
    promises promised{};
};

/// Follows every contribution through the schedules of all ranks, round by round.
///
/// Keeps, for each rank and part, the set of ranks whose contribution is in it. Cost: O(P²·parts) bits of memory, and
/// time proportional to the parts that are sent.
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
    /// A message in flight. Its content is in `payload_`, from `first_set` on: what the sender knows, then a set for
    /// each part.
    struct message {
        transfer from{};
        std::size_t first_set = 0;
    };
    using messages = std::span<const message>;

    constexpr bool refuse(int round, rank_t rank, const char* what) {
        verdict_ = {false, round, rank, what};
        return false;
    }
    constexpr std::vector<message>& inbox(rank_t rank) { return inbox_[static_cast<std::size_t>(rank)]; }
    constexpr rank_set knows(rank_t rank) { return knows_[static_cast<std::size_t>(rank)]; }
    constexpr const S& schedule(rank_t rank) const { return schedules_[static_cast<std::size_t>(rank)]; }
    constexpr std::size_t cell(rank_t rank, int part) const {
        return static_cast<std::size_t>(rank) * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(part);
    }
    constexpr bool is_rooted() const { return aim_.what == operation::reduce || aim_.what == operation::broadcast; }
    constexpr bool only_copies() const {
        return aim_.what == operation::all_gather || aim_.what == operation::broadcast;
    }

    // What each rank has at the start and must have at the end.

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
        if (aim_.promised.owners && parts_ % aim_.size != 0)
            return refuse(-1, 0, "not all ranks own equally many parts");
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
        inbox_ = std::vector<std::vector<message>>(static_cast<std::size_t>(aim_.size));
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

    /// One round: all messages carry what their senders had before the round; then every rank applies what it receives.
    constexpr bool step(int round) {
        payload_.clear();
        for (auto& arrived : inbox_) arrived.clear();
        for (rank_t r = 0; r < aim_.size; ++r)
            if (!post(round, r)) return false;
        for (rank_t r = 0; r < aim_.size; ++r)
            if (!check_receives(round, r)) return false;
        for (rank_t r = 0; r < aim_.size; ++r)
            if (!apply(round, r)) return false;
        return true;
    }

    // Checks one transfer without looking at its other end.

    constexpr bool check_transfer(int round, rank_t rank, transfer t) {
        if (t.peer < 0 || t.peer >= aim_.size) return refuse(round, rank, "a peer is outside the group");
        if (t.peer == rank) return refuse(round, rank, "a rank sends to itself");
        if (t.parts == part_range{}) {
            const bool notice = is_rooted() && schedule(rank).kind(round) == action::copy;
            return notice || refuse(round, rank, "a transfer carries no parts, and the operation needs no notice");
        }
        if (t.parts.first < 0 || t.parts.last > parts_ || t.parts.count() < 1)
            return refuse(round, rank, "a range of parts is not inside [0, parts())");
        if (t.parts.count() > 1 && carries_one_part(schedule(rank)))
            return refuse(round, rank, "a transfer carries several parts, against its promise");
        return true;
    }
    /// Where rounds may overlap, a part that is sent must have been received before those that may be under way.
    constexpr bool check_lookahead(int round, rank_t rank, part_range parts) {
        if constexpr (LookaheadSchedule<S>) {
            const int ahead = schedule(rank).lookahead();
            if (ahead < 1) return refuse(round, rank, "lookahead() is less than 1");
            if (ahead > 1 && parts == part_range{}) return refuse(round, rank, "a notice may be sent too early");
            for (int part = parts.first; part < parts.last; ++part)
                if (const int last = received_in_[cell(rank, part)]; last >= 0 && last > round - ahead)
                    return refuse(round, rank, "a part may be sent before it has been received");
        }
        return true;
    }
    /// Senders post in ascending order, so that every inbox has the order in which receives must be listed.
    constexpr bool post(int round, rank_t rank) {
        for (int i = 0; i < schedule(rank).sends(round); ++i) {
            const transfer t = schedule(rank).send(round, i);
            if (!check_transfer(round, rank, t) || !check_lookahead(round, rank, t.parts)) return false;
            inbox(t.peer).push_back({{rank, t.parts}, payload_.count()});
            payload_.push(knows(rank));
            for (int part = t.parts.first; part < t.parts.last; ++part) {
                payload_.push(has_[cell(rank, part)]);
                is_unused_[cell(rank, part)] = 0;
            }
        }
        return true;
    }
    constexpr bool check_receives(int round, rank_t rank) {
        const S& s = schedule(rank);
        const auto sent = static_cast<int>(inbox(rank).size());
        rank_t before = no_rank;
        for (int i = 0; i < s.receives(round); ++i) {
            const transfer t = s.receive(round, i);
            if (!check_transfer(round, rank, t)) return false;
            if (t.peer < before) return refuse(round, rank, "receives are not in ascending order of peers");
            before = t.peer;
            if (!check_pair(round, rank, t, i)) return false;
        }
        if (sent > s.receives(round)) return refuse(round, rank, "a send to this rank has no receive in its round");
        return arrives_whole(round, rank) || refuse(round, rank, "parts received in one round overlap");
    }
    /// Checks that receive `i` matches message `i` of the inbox.
    constexpr bool check_pair(int round, rank_t rank, transfer t, int i) {
        const auto at = static_cast<std::size_t>(i);
        if (at >= inbox(rank).size() || t.peer < inbox(rank)[at].from.peer)
            return refuse(round, rank, "a receive has no send in its round");
        const transfer sent = inbox(rank)[at].from;
        if (sent.peer < t.peer) return refuse(round, rank, "a send to this rank has no receive in its round");
        if (sent.parts != t.parts) return refuse(round, rank, "a receive expects other parts than are sent");
        if (schedule(sent.peer).kind(round) != schedule(rank).kind(round))
            return refuse(round, rank, "one end of a message folds, the other copies");
        return true;
    }
    /// Whether the messages of one round all carry the same range, to be folded, or disjoint ranges.
    constexpr bool arrives_whole(int round, rank_t rank) {
        bool all_same = schedule(rank).kind(round) == action::fold;
        for (const message& m : inbox(rank)) all_same = all_same && m.from.parts == inbox(rank)[0].from.parts;
        if (all_same) return true;
        for (const message& m : inbox(rank))
            for (int part = m.from.parts.first; part < m.from.parts.last; ++part)
                if (std::exchange(received_in_[cell(rank, part)], round) == round) return false;
        return true;
    }

    // How a rank applies the messages in its inbox.

    constexpr rank_set_view carried(const message& m, int part) const {
        return payload_[m.first_set + 1 + static_cast<std::size_t>(part - m.from.parts.first)];
    }

    constexpr bool apply(int round, rank_t rank) {
        const messages all(inbox(rank));
        if (all.empty()) return true;
        const bool folds = schedule(rank).kind(round) == action::fold;
        if (folds && all.back().from.parts == all.front().from.parts) {
            if (!fold(round, rank, all)) return false;
        } else {
            for (std::size_t i = 0; i < all.size(); ++i)
                if (folds ? !fold(round, rank, all.subspan(i, 1)) : !copy(round, rank, all[i])) return false;
        }
        learn_own(rank);
        return true;
    }

    /// Folds messages that carry the same parts. In an operation that folds, every rank has content in every part from
    /// the start.
    constexpr bool fold(int round, rank_t rank, messages all) {
        if (only_copies()) return refuse(round, rank, "the operation folds nothing");
        const part_range range = all.front().from.parts;
        for (int part = range.first; part < range.last; ++part) {
            const std::size_t here = cell(rank, part);
            if (was_copied_[here] != 0) return refuse(round, rank, "a part is folded after it was copied");
            if (aim_.promised.owners &&
                (part / (parts_ / aim_.size) != rank || static_cast<int>(all.size()) != aim_.size - 1))
                return refuse(round, rank, "a part is not folded by its owner, from all ranks at once");
            if (aim_.promised.rank_order && !keeps_order(rank, part, all))
                return refuse(round, rank, "a fold does not keep the order of ranks");
            for (const message& m : all) {
                const rank_set_view more = carried(m, part);
                if (!are_disjoint(has_[here], more)) return refuse(round, rank, "a contribution is folded twice");
                join(has_[here], more);
            }
            is_unused_[here] = 1;
            received_in_[here] = round;
            if (!check_owner(round, rank, part)) return false;
        }
        return true;
    }
    /// Whether the fold keeps the order of ranks: messages in ascending order of senders, the rank's own content at its
    /// place.
    constexpr bool keeps_order(rank_t rank, int part, messages all) const {
        rank_t last = no_rank;
        const auto follows = [&](rank_set_view next) { return smallest(next) > std::exchange(last, largest(next)); };
        std::size_t i = 0;
        for (; i < all.size() && all[i].from.peer < rank; ++i)
            if (!follows(carried(all[i], part))) return false;
        if (!follows(has_[cell(rank, part)])) return false;
        for (; i < all.size(); ++i)
            if (!follows(carried(all[i], part))) return false;
        return true;
    }
    /// With a copy phase (rounds in which finished parts are sent on unchanged), only one rank may finish a part.
    constexpr bool check_owner(int round, rank_t rank, int part) {
        if (!aim_.promised.copy_phase || !is_complete(has_[cell(rank, part)], part)) return true;
        rank_t& owner = finished_by_[static_cast<std::size_t>(part)];
        if (owner != no_rank) return refuse(round, rank, "two ranks finish a part: there is no copy phase");
        owner = rank;
        return true;
    }

    constexpr bool copy(int round, rank_t rank, const message& m) {
        if (aim_.what == operation::reduce && m.from.parts.count() > 0)
            return refuse(round, rank, "a reduction copies no parts");
        for (int part = m.from.parts.first; part < m.from.parts.last; ++part) {
            const std::size_t here = cell(rank, part);
            const rank_set_view more = carried(m, part);
            if (!is_larger(more, has_[here]))
                return refuse(round, rank, "a copy brings nothing new, or less than it replaces");
            if (aim_.promised.copy_phase && !is_complete(more, part))
                return refuse(round, rank, "a part is copied before it is finished");
            join(has_[here], more);
            was_copied_[here] = 1;
            is_unused_[here] = 1;
            received_in_[here] = round;
        }
        const bool news = join(knows(rank), payload_[m.first_set]);
        return news || m.from.parts.count() > 0 || refuse(round, rank, "a notice tells nothing new");
    }

    // What a rank knows in rooted operations. Reduction: whether the root has finished. Broadcast: which ranks have
    // entered.

    constexpr void learn_own(rank_t rank) {
        if (!is_rooted()) return;
        if (aim_.what == operation::broadcast) {
            insert(knows(rank), rank);
            return;
        }
        for (int part = 0; part < parts_; ++part)
            if (!must_have(rank, part) || !is_complete(has_[cell(rank, part)], part)) return;
        insert(knows(rank), rank);
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
            if (aim_.what == operation::reduce && !contains(knows(r), aim_.root))
                return refuse(-1, r, "a rank is not told that the root has finished");
            if (aim_.what == operation::broadcast && !are_equal(knows(r), everyone_[0]))
                return refuse(-1, r, "a rank does not learn that all ranks have entered");
        }
        return true;
    }

    obligation aim_;
    verdict verdict_{};
    std::vector<S> schedules_{};
    int parts_ = 0;

    rank_sets everyone_{};                       // one set: all ranks
    rank_sets has_{};                            // (rank, part): the ranks whose contributions are in it
    rank_sets knows_{};                          // rank: the ranks that it knows of
    std::vector<int> received_in_{};             // (rank, part): the last round in which it was received
    std::vector<char> was_copied_{};             // (rank, part)
    std::vector<char> is_unused_{};              // (rank, part): received and not sent since
    std::vector<rank_t> finished_by_{};          // part: who folded the last contribution into it
    std::vector<std::vector<message>> inbox_{};  // rank: the messages of this round, by sender
    rank_sets payload_{};                        // of each message: what the sender knows, then a set for each part
};

}}}  // namespace rill::RILL_ABI::topology
