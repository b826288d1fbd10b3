#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/constexpr_vectors.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/mixing_rows.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Ranks that share an edge of a given graph mix in each round, with weight 1/(1 + d), where d is the higher of the
/// numbers of their edges. Models `Mixing`.
///
///     const topology::metropolis grid{.edges = {{0, 1}, {1, 2}, {0, 3}, {1, 4}, {2, 5}, {3, 4}, {4, 5}}};
///
/// Memory: the graph on each rank. Errors: `contract_violation` from `bind` if an edge has an end outside, or is given
/// twice, in one or in both directions, or leads from a rank to itself. Source: Xiao and Boyd 2004.
struct metropolis {
    static constexpr const char* name = "metropolis";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = true;

    std::vector<std::array<rank_t, 2>> edges{};

    class bound {
      public:
        RILL_CONSTEXPR_VECTORS bound(int size, std::span<const std::array<rank_t, 2>> edges)
            : neighbours_(static_cast<std::size_t>(detail::checked_size(size))) {
            for (const auto& [a, b] : edges) {
                RILL_EXPECTS(0 <= a && a < size && 0 <= b && b < size, "topology::metropolis: an edge leads outside");
                RILL_EXPECTS(a != b, "topology::metropolis: an edge leads from a rank to itself");
                at(a).push_back(b);
                at(b).push_back(a);
            }
            for (auto& each : neighbours_) {
                std::sort(each.begin(), each.end());
                RILL_EXPECTS(std::adjacent_find(each.begin(), each.end()) == each.end(),
                             "topology::metropolis: an edge is given twice");
            }
        }
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t, rank_t rank, mixing_row& row) const {
            detail::clear(row);
            for (const rank_t peer : at(rank)) {
                const double weight = 1.0 / static_cast<double>(1 + std::max(at(rank).size(), at(peer).size()));
                row.senders.push_back({peer, weight});
                row.receivers.push_back(peer);
                row.own_weight -= weight;
            }
        }

      private:
        RILL_CONSTEXPR_VECTORS std::vector<rank_t>& at(rank_t rank) {
            return neighbours_[static_cast<std::size_t>(rank)];
        }
        RILL_CONSTEXPR_VECTORS const std::vector<rank_t>& at(rank_t rank) const {
            return neighbours_[static_cast<std::size_t>(rank)];
        }

        std::vector<std::vector<rank_t>> neighbours_;
    };

    RILL_CONSTEXPR_VECTORS bound bind(int size, random_key) const { return {size, edges}; }
    template <class Visit>
    RILL_CONSTEXPR_VECTORS void visit_options(Visit&& visit) const {
        for (const auto& [a, b] : edges) {
            visit("end of an edge", a);
            visit("end of an edge", b);
        }
    }
    friend bool operator==(const metropolis&, const metropolis&) = default;
};

static_assert(Mixing<metropolis>);

}}}  // namespace rill::RILL_ABI::topology
