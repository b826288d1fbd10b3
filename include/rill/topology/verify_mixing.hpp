// Proves that a mixing keeps its promises, at compile time for small groups.
#pragma once

#include <rill/concept/detail/mixing_defect.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// What the proof of a mixing found: nothing, or the first defect.
struct mixing_verdict {
    bool ok = true;
    std::uint64_t round = 0;
    rank_t rank = no_rank;    ///< the rank at which it shows
    rank_t peer = no_rank;    ///< the other one, where two are concerned
    const char* what = "ok";  ///< complete sentence

    constexpr explicit operator bool() const { return ok; }
};

/// Which rounds are looked at, and of how many of them in a row the links, taken together, must lead from each rank to
/// each other.
struct mixing_rounds {
    std::uint64_t count = 16;
    std::uint64_t window = 0;  ///< at most `count`; 0: links need not join the ranks
};

namespace detail {

/// How far sums may be off, because weights are rounded.
inline constexpr double mixing_tolerance = 1e-12;

constexpr double distance(double a, double b) { return a < b ? b - a : a - b; }

/// Looks at the rows of all ranks, round by round.
template <class Bound>
class mixing_proof {
  public:
    /// `bind()` gives each rank an object of its own, as ranks have in a run.
    template <class Bind>
    RILL_CONSTEXPR_VECTORS mixing_proof(int size, bool doubly, bool symmetric, bool keeps, const Bind& bind)
        : is_doubly_(doubly), is_symmetric_(symmetric), keeps_(keeps), rows_(static_cast<std::size_t>(size)) {
        for (int i = 0; i < size; ++i) bound_.push_back(bind());
    }

    RILL_CONSTEXPR_VECTORS mixing_verdict run(const mixing_rounds& over) {
        for (round_ = 0; found_.ok && round_ < over.count; ++round_) {
            for (rank_t rank = 0; rank < size(); ++rank) bound_[index(rank)].fill(round_, rank, rows_[index(rank)]);
            if (check_shapes() && check_ends() && check_sums() && check_promises()) remember(over.window);
        }
        return found_;
    }

  private:
    static constexpr std::size_t index(rank_t rank) { return static_cast<std::size_t>(rank); }
    RILL_CONSTEXPR_VECTORS rank_t size() const { return static_cast<rank_t>(rows_.size()); }
    RILL_CONSTEXPR_VECTORS bool blame(const char* what, rank_t rank, rank_t peer = no_rank) {
        found_ = {.ok = false, .round = round_, .rank = rank, .peer = peer, .what = what};
        return false;
    }

    RILL_CONSTEXPR_VECTORS bool check_shapes() {
        for (rank_t rank = 0; rank < size(); ++rank)
            if (const auto defect = rill::detail::find_defect(rows_[index(rank)], rank, size()))
                return blame(defect.what, rank, defect.peer);
        return true;
    }

    RILL_CONSTEXPR_VECTORS const mixing_end* sender(rank_t rank, rank_t peer) const {
        const auto& senders = rows_[index(rank)].senders;
        const auto at = std::lower_bound(senders.begin(), senders.end(), peer,
                                         [](const mixing_end& each, rank_t of) { return each.peer < of; });
        return at != senders.end() && at->peer == peer ? &*at : nullptr;
    }
    RILL_CONSTEXPR_VECTORS bool check_ends() {
        for (rank_t rank = 0; rank < size(); ++rank) {
            for (const mixing_end& from : rows_[index(rank)].senders) {
                const auto& receivers = rows_[index(from.peer)].receivers;
                if (!std::binary_search(receivers.begin(), receivers.end(), rank))
                    return blame("it awaits a model that its sender does not send", rank, from.peer);
            }
            for (const rank_t to : rows_[index(rank)].receivers)
                if (sender(to, rank) == nullptr) return blame("it sends a model that nobody awaits", rank, to);
        }
        return true;
    }

    RILL_CONSTEXPR_VECTORS bool check_sums() {
        std::vector<double> columns(rows_.size(), 0.0);
        for (rank_t rank = 0; rank < size(); ++rank) {
            const mixing_row& row = rows_[index(rank)];
            double sum = row.own_weight;
            columns[index(rank)] += row.own_weight;
            for (const mixing_end& from : row.senders) {
                sum += from.weight;
                columns[index(from.peer)] += from.weight;
            }
            if (is_doubly_ && distance(sum, 1) > mixing_tolerance)
                return blame("the weights of what it takes do not sum to 1", rank);
        }
        for (rank_t rank = 0; rank < size(); ++rank)
            if (distance(columns[index(rank)], 1) > mixing_tolerance)
                return blame("the weights that its model has do not sum to 1", rank);
        return true;
    }

    RILL_CONSTEXPR_VECTORS bool check_promises() {
        if (is_symmetric_)
            for (rank_t rank = 0; rank < size(); ++rank)
                for (const mixing_end& from : rows_[index(rank)].senders) {
                    const mixing_end* const back = sender(from.peer, rank);
                    if (back == nullptr || back->weight != from.weight)
                        return blame("two ranks do not exchange alike, though it says is_symmetric", rank, from.peer);
                }
        if (!keeps_) return true;
        if (round_ == 0) first_ = rows_;
        for (rank_t rank = 0; rank < size(); ++rank)
            if (!(rows_[index(rank)] == first_[index(rank)]))
                return blame("its row changes, though it says keeps_neighbours", rank);
        return true;
    }

    /// Counts who sends to whom in the last `window` rounds, and looks whether that joins all ranks.
    RILL_CONSTEXPR_VECTORS void remember(std::uint64_t window) {
        if (window == 0) return;
        if (round_ == 0) {
            recent_.resize(static_cast<std::size_t>(window));
            counts_.assign(rows_.size() * rows_.size(), 0);
        }
        std::vector<std::size_t>& links = recent_[static_cast<std::size_t>(round_ % window)];
        for (const std::size_t link : links) --counts_[link];
        links.clear();
        for (rank_t rank = 0; rank < size(); ++rank)
            for (const mixing_end& from : rows_[index(rank)].senders)
                if (from.weight > 0) links.push_back(index(from.peer) * rows_.size() + index(rank));
        for (const std::size_t link : links) ++counts_[link];
        if (round_ + 1 < window) return;
        for (const bool forwards : {true, false})
            if (const rank_t apart = not_reached(forwards); apart != no_rank) {
                blame(forwards ? "the links of a window of rounds do not lead from rank 0 to it"
                               : "the links of a window of rounds do not lead from it to rank 0",
                      apart, 0);
                found_.round = round_ + 1 - window;
                return;
            }
    }
    /// A rank that no links lead to from rank 0 (or from it, backwards).
    RILL_CONSTEXPR_VECTORS rank_t not_reached(bool forwards) const {
        const std::size_t ranks = rows_.size(), to_next = forwards ? 1 : ranks, to_own = forwards ? ranks : 1;
        std::vector<std::size_t> reached{0}, others;
        for (std::size_t rank = 1; rank < ranks; ++rank) others.push_back(rank);
        for (std::size_t done = 0; done < reached.size() && !others.empty(); ++done) {
            const std::size_t own = reached[done] * to_own;
            std::size_t left = 0;
            for (const std::size_t other : others)
                if (counts_[own + other * to_next] > 0)
                    reached.push_back(other);
                else
                    others[left++] = other;
            others.resize(left);
        }
        return others.empty() ? no_rank : static_cast<rank_t>(others.front());
    }

    bool is_doubly_, is_symmetric_, keeps_;
    std::vector<Bound> bound_{};
    std::vector<mixing_row> rows_;
    std::vector<mixing_row> first_{};                 ///< of round 0, where they must stay
    std::vector<std::vector<std::size_t>> recent_{};  ///< the links of the last rounds, as places in `counts_`
    std::vector<unsigned> counts_{};                  ///< of how many of them a link is, by sender and receiver
    std::uint64_t round_ = 0;
    mixing_verdict found_{};
};

}  // namespace detail

/// The first defect of a mixing among `size` ranks in the rounds `over`, if it has one.
///
/// Defects are: a sender or receiver that is no other rank, or out of order, so also one that is named twice; a model
/// that is awaited and not sent, or the reverse; a negative weight; a row or column whose sum is off by more than
/// 1e-12; a flag that does not hold; a window of rounds whose links, taken together, do not lead from each rank to each
/// other. Also at compile time, for some 17 ranks. Throws `contract_violation` if there is no rank, or if the window is
/// longer than the rounds. Cost: memory O(P²) for a mixing that draws or with a window, else O(P + edges); time per
/// round O(P + edges) besides `fill`, and O(P²) with a window.
template <Mixing M>
RILL_CONSTEXPR_VECTORS mixing_verdict verify_mixing(const M& mixing, int size, const mixing_rounds& over = {},
                                                    random_key key = {}) {
    RILL_EXPECTS(size >= 1, "topology::verify_mixing: a mixing has at least one rank");
    RILL_EXPECTS(over.window <= over.count, "topology::verify_mixing: the window is longer than the rounds");
    const auto bind = [&] { return mixing.bind(size, key); };
    return detail::mixing_proof<std::remove_cvref_t<decltype(bind())>>(size, M::is_doubly_stochastic, M::is_symmetric,
                                                                       M::keeps_neighbours, bind)
        .run(over);
}

/// Whether a mixing keeps the mean of all models: rows and columns sum to 1 in its first 16 rounds, and it says so.
///
///     static_assert(topology::mixes_doubly(my_mixing{}, 8));
///
template <Mixing M>
RILL_CONSTEXPR_VECTORS bool mixes_doubly(const M& mixing, int size) {
    return M::is_doubly_stochastic && verify_mixing(mixing, size).ok;
}

/// Whether the links of any `window` rounds in a row, taken together, lead from each rank to each other, in the first 3
/// times `window` rounds. `window`: at least 1.
template <Mixing M>
RILL_CONSTEXPR_VECTORS bool connects(const M& mixing, int size, std::uint64_t window) {
    RILL_EXPECTS(window >= 1, "topology::connects: a window has at least one round");
    return verify_mixing(mixing, size, {.count = 3 * window, .window = window}).ok;
}

}}}  // namespace rill::RILL_ABI::topology
