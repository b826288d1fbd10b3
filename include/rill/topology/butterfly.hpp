#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/topology/pairing.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// What the members of a butterfly exchange at each level. The numbers of the two members of an exchange differ in one
/// bit, and each level has its own bit.
enum class butterfly_plan : unsigned char {
    exchange,           ///< the whole vector, lowest bit first
    halve_then_double,  ///< halves, top bit first; then all they have, lowest bit first
    halve_far,          ///< halves, top bit first: member i ends with block i
    halve_near,         ///< halves, lowest bit first: member i ends with block reverse(i), which a last round delivers
    gather              ///< all they have, lowest bit first
};

/// One rank's schedule of recursive halving and doubling among 2^L members. If there are pairs, a first round brings
/// the content of each pair's second rank in, and a last round copies the result out to it. Models `Schedule`.
class butterfly_schedule {
  public:
    constexpr butterfly_schedule() = default;
    constexpr butterfly_schedule(butterfly_plan plan, int size, rank_t rank)
        : plan_(plan), size_(size), rank_(rank), pairing_(size) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology: the rank is outside the group");
    }

    constexpr int parts() const {
        if (plan_ == butterfly_plan::exchange) return 1;
        return plan_ == butterfly_plan::halve_then_double ? pairing_.members() : size_;
    }
    constexpr int rounds() const { return in_rounds() + level_rounds() + out_rounds(); }
    constexpr action kind(int round) const {
        const bool fold = plan_ != butterfly_plan::gather && !is_out(round) && !doubles(round);
        return fold ? action::fold : action::copy;
    }

    constexpr int sends(int round) const {
        if (is_in(round)) return pairing_.leads(rank_) ? 0 : 1;
        if (!pairing_.leads(rank_)) return 0;
        return is_out(round) ? out_sends() : 1;
    }
    constexpr transfer send(int round, int i) const {
        if (is_in(round)) return {rank_ - 1, brought_by(rank_)};
        if (is_out(round)) return out_send(i);
        const int peer = peer_member(round);
        return {pairing_.leader(peer), block(round, doubles(round) ? member() : peer)};
    }

    constexpr int receives(int round) const {
        if (is_in(round)) return pairing_.is_paired(rank_) && pairing_.leads(rank_) ? 1 : 0;
        if (is_out(round)) return out_receives();
        return pairing_.leads(rank_) ? 1 : 0;
    }
    constexpr transfer receive(int round, int i) const {
        if (is_in(round)) return {rank_ + 1, brought_by(rank_ + 1)};
        if (is_out(round)) return out_receive(i);
        const int peer = peer_member(round);
        return {pairing_.leader(peer), block(round, doubles(round) ? peer : member())};
    }

    friend constexpr bool operator==(const butterfly_schedule&, const butterfly_schedule&) = default;

  private:
    constexpr int member() const { return pairing_.member(rank_); }
    constexpr part_range all() const { return {0, parts()}; }

    constexpr int in_rounds() const { return pairing_.pairs() > 0 ? 1 : 0; }
    constexpr int level_rounds() const {
        return pairing_.levels() * (plan_ == butterfly_plan::halve_then_double ? 2 : 1);
    }
    constexpr int out_rounds() const {
        const bool misplaced = plan_ == butterfly_plan::halve_near && pairing_.levels() > 1;
        return pairing_.pairs() > 0 || misplaced ? 1 : 0;
    }
    constexpr bool is_in(int round) const { return round < in_rounds(); }
    constexpr bool is_out(int round) const { return round >= in_rounds() + level_rounds(); }

    /// Whether a round doubles: then a member sends what it has; in halving, it sends what the peer is to have.
    constexpr bool doubles(int round) const {
        if (plan_ == butterfly_plan::halve_then_double) return round - in_rounds() >= pairing_.levels();
        return plan_ == butterfly_plan::gather;
    }
    constexpr bool far_first(int round) const {
        return plan_ == butterfly_plan::halve_far || (plan_ == butterfly_plan::halve_then_double && !doubles(round));
    }
    /// The bit in which the two members of a round differ.
    constexpr int bit(int round) const {
        const int step = (round - in_rounds()) % pairing_.levels();
        return far_first(round) ? pairing_.levels() - 1 - step : step;
    }
    constexpr int peer_member(int round) const { return member() ^ (1 << bit(round)); }

    /// The parts that belong to member `m` in a round: one of the two halves that the round divides or joins.
    constexpr part_range block(int round, int m) const {
        if (plan_ == butterfly_plan::exchange) return all();
        const int b = bit(round);
        if (plan_ == butterfly_plan::halve_near) {
            const int count = pairing_.members() >> (b + 1);
            const int first = reversed(m) & ~(count - 1);
            return parts_of(first, first + count);
        }
        const int first = m & ~((1 << b) - 1);
        return parts_of(first, first + (1 << b));
    }
    constexpr part_range parts_of(int first_member, int last_member) const {
        if (plan_ == butterfly_plan::halve_then_double) return {first_member, last_member};
        return {pairing_.leader(first_member), pairing_.leader(last_member)};
    }
    constexpr int reversed(int m) const {
        int result = 0;
        for (int b = 0; b < pairing_.levels(); ++b) result |= ((m >> b) & 1) << (pairing_.levels() - 1 - b);
        return result;
    }

    constexpr part_range brought_by(rank_t rank) const {
        return plan_ == butterfly_plan::gather ? part_range{rank, rank + 1} : all();
    }

    constexpr int out_sends() const {
        if (plan_ == butterfly_plan::halve_near) return held().count() - (held().contains(rank_) ? 1 : 0);
        if (!pairing_.is_paired(rank_)) return 0;
        return plan_ == butterfly_plan::gather ? 2 : 1;
    }
    constexpr transfer out_send(int i) const {
        if (plan_ != butterfly_plan::halve_near) return {rank_ + 1, brought_to(rank_ + 1, i)};
        const int part = held().first + i + (held().contains(rank_) ? 1 : 0);
        return {part, {part, part + 1}};
    }
    constexpr int out_receives() const {
        if (plan_ == butterfly_plan::halve_near) return holder() == rank_ ? 0 : 1;
        if (pairing_.leads(rank_)) return 0;
        return plan_ == butterfly_plan::gather ? 2 : 1;
    }
    constexpr transfer out_receive(int i) const {
        if (plan_ == butterfly_plan::halve_near) return {holder(), {rank_, rank_ + 1}};
        return {rank_ - 1, brought_to(rank_, i)};
    }
    /// The parts that the second rank of a pair still lacks at the end.
    constexpr part_range brought_to(rank_t rank, int i) const {
        if (plan_ == butterfly_plan::halve_far) return {rank, rank + 1};
        if (plan_ == butterfly_plan::gather) return i == 0 ? part_range{0, rank} : part_range{rank + 1, size_};
        return all();
    }
    /// After `halve_near`: `held` are the parts that this leader holds, `holder` is the leader that holds this rank's
    /// part.
    constexpr part_range held() const { return parts_of(reversed(member()), reversed(member()) + 1); }
    constexpr rank_t holder() const { return pairing_.leader(reversed(member())); }

    butterfly_plan plan_ = butterfly_plan::exchange;
    int size_ = 1;
    rank_t rank_ = 0;
    pairing pairing_{};
};

}}}  // namespace rill::RILL_ABI::topology
