#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/contract.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Whether the parts of a schedule can be cut into chunks, because no transfer carries more than one; the answer is the
/// same on all ranks.
template <Schedule S>
constexpr bool can_be_cut(const S& schedule) {
    return carries_one_part(schedule) || schedule.parts() == 1;
}

/// A schedule whose parts are cut into chunks: part p consists of the parts `p * chunks … (p + 1) * chunks - 1`. Each
/// round becomes `chunks` rounds, one for each chunk, with the same peers. Models `LookaheadSchedule`.
///
/// What is sent in a round of chunk c depends only on what was received in earlier rounds of chunk c, `lookahead()` or
/// more rounds before. So it can be sent while other chunks are in flight. The schedule is proved like any other.
/// Executed round by round, or ahead, it moves the same messages between each pair of ranks in the same order, and
/// every coordinate is folded as without chunks.
template <Schedule S>
class chunked_schedule {
  public:
    static constexpr int most_ahead = 16;  // more would take memory and gain nothing

    constexpr chunked_schedule() = default;
    constexpr chunked_schedule(const S& whole, int chunks) : whole_(whole), chunks_(chunks) {
        RILL_EXPECTS(chunks == 1 || (chunks > 1 && can_be_cut(whole)),
                     "topology::chunked_schedule: only parts that travel alone can be cut");
    }

    constexpr int chunks() const { return chunks_; }
    /// The chunks of a part of the whole schedule.
    constexpr part_range chunks_of(int part) const { return {part * chunks_, (part + 1) * chunks_}; }
    constexpr int lookahead() const { return chunks_ < most_ahead ? chunks_ : most_ahead; }

    constexpr int parts() const { return whole_.parts() * chunks_; }
    constexpr int rounds() const { return whole_.rounds() * chunks_; }
    constexpr action kind(int round) const { return whole_.kind(round / chunks_); }
    constexpr int sends(int round) const { return whole_.sends(round / chunks_); }
    constexpr transfer send(int round, int i) const { return cut(whole_.send(round / chunks_, i), round % chunks_); }
    constexpr int receives(int round) const { return whole_.receives(round / chunks_); }
    constexpr transfer receive(int round, int i) const {
        return cut(whole_.receive(round / chunks_, i), round % chunks_);
    }

    friend constexpr bool operator==(const chunked_schedule&, const chunked_schedule&) = default;

  private:
    constexpr transfer cut(transfer t, int chunk) const {
        if (chunks_ == 1 || t.parts.count() == 0) return t;
        const int first = t.parts.first * chunks_ + chunk;
        return {t.peer, {first, first + 1}};
    }

    S whole_{};
    int chunks_ = 1;
};

}}}  // namespace rill::RILL_ABI::topology
