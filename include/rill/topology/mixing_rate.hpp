#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

namespace detail {

inline void take_from_mean(std::vector<double>& values) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    for (double& each : values) each -= mean;
}

/// The mean of WᵀW over rounds, whose matrices W are given by their rows.
class mean_square {
  public:
    /// `rounds`: of at least one round. Not copied.
    explicit mean_square(const std::vector<std::vector<mixing_row>>& rounds)
        : rounds_(rounds), size_(rounds.front().size()) {
        std::size_t entries = 0;
        for (const auto& rows : rounds)
            for (const mixing_row& row : rows) entries += 1 + row.senders.size();
        if (size_ * size_ <= entries) sum_up();
    }

    /// `out` = the mean times `in`. Cost: as many products as the matrix has entries, or twice as many as all rows
    /// have, whichever are fewer.
    void multiply(const std::vector<double>& in, std::vector<double>& out) const {
        std::fill(out.begin(), out.end(), 0.0);
        if (sum_.empty()) {
            for (const auto& rows : rounds_) add_twice_mixed(rows, in, out);
        } else {
            for (std::size_t i = 0; i < size_; ++i)
                out[i] = std::inner_product(in.begin(), in.end(), sum_.data() + i * size_, 0.0);
        }
        for (double& each : out) each /= static_cast<double>(rounds_.size());
    }

  private:
    static void add_twice_mixed(const std::vector<mixing_row>& rows, const std::vector<double>& in,
                                std::vector<double>& out) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            double mixed = rows[i].own_weight * in[i];
            for (const mixing_end& from : rows[i].senders)
                mixed += from.weight * in[static_cast<std::size_t>(from.peer)];
            out[i] += rows[i].own_weight * mixed;
            for (const mixing_end& from : rows[i].senders)
                out[static_cast<std::size_t>(from.peer)] += from.weight * mixed;
        }
    }

    void sum_up() {
        sum_.resize(size_ * size_);
        std::vector<mixing_end> row;
        for (const auto& rows : rounds_)
            for (std::size_t i = 0; i < size_; ++i) {
                row.assign(rows[i].senders.begin(), rows[i].senders.end());
                row.push_back({static_cast<rank_t>(i), rows[i].own_weight});
                for (const mixing_end& one : row)
                    for (const mixing_end& other : row)
                        sum_[static_cast<std::size_t>(one.peer) * size_ + static_cast<std::size_t>(other.peer)] +=
                            one.weight * other.weight;
            }
    }

    const std::vector<std::vector<mixing_row>>& rounds_;
    std::size_t size_;
    std::vector<double> sum_{};  // of all rounds, row by row; empty where that has more entries than all rows
};

/// The rows of all ranks in each of the first `rounds` rounds.
template <Mixing M>
std::vector<std::vector<mixing_row>> rows_of_rounds(const M& mixing, int size, std::uint64_t rounds, random_key key) {
    auto bound = mixing.bind(size, key);
    std::vector<std::vector<mixing_row>> all(static_cast<std::size_t>(rounds),
                                             std::vector<mixing_row>(static_cast<std::size_t>(size)));
    for (std::size_t round = 0; round < all.size(); ++round)
        for (rank_t rank = 0; rank < size; ++rank) bound.fill(round, rank, all[round][static_cast<std::size_t>(rank)]);
    return all;
}

/// See `topology::mixing_rate`. `all`: what `rows_of_rounds` returns, of at least one round.
inline double rate_of_rounds(const std::vector<std::vector<mixing_row>>& all) {
    random_sequence random(random_key{1});
    const mean_square mean(all);
    std::vector<double> now(all.front().size()), next(now.size());
    for (double& each : now) each = random.uniform() - 0.5;
    double rate = 0;
    for (int step = 0; step < 20'000; ++step) {
        detail::take_from_mean(now);
        const double length = std::sqrt(std::inner_product(now.begin(), now.end(), now.begin(), 0.0));
        if (length < 1e-150) return 0;
        for (double& each : now) each /= length;
        mean.multiply(now, next);
        const double before = std::exchange(rate, std::inner_product(now.begin(), now.end(), next.begin(), 0.0));
        now.swap(next);
        if (step > 10 && std::abs(rate - before) <= 1e-13 * rate) break;
    }
    return rate;
}

}  // namespace detail

/// By which factor a mixing shrinks the squared distance of the models from their mean in a round, on average, in the
/// worst direction: the second largest eigenvalue of the mean of WᵀW over the first `rounds` rounds.
///
/// For a mixing that is doubly stochastic. By power iteration, to some 10 digits; where two eigenvalues are close it
/// gives one of them. Memory O(rounds · edges); time O(min(rounds · edges, size²)) per iteration. Source: Boyd et al.
/// 2006.
template <Mixing M>
double mixing_rate(const M& mixing, int size, std::uint64_t rounds, random_key key = {}) {
    static_assert(M::is_doubly_stochastic,
                  "rill::topology::mixing_rate: the mixing does not keep the mean of all models; only of one that says "
                  "is_doubly_stochastic the distance from the mean has a rate");
    RILL_EXPECTS(rounds >= 1, "topology::mixing_rate: there is at least one round");
    if (size == 1) return 0;
    return detail::rate_of_rounds(detail::rows_of_rounds(mixing, size, rounds, key));
}

}}}  // namespace rill::RILL_ABI::topology
