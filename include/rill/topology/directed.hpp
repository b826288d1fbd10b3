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
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// In each round ranks send along the edges of a given directed graph, from the first end to the second: a rank with d
/// receivers gives 1/(1 + d) of its model to each and keeps as much. So columns sum to 1 and rows do not: the mixing is
/// one for push-sum, which needs no edge back. Models `Mixing`.
///
///     const topology::directed loop{.edges = {{0, 1}, {1, 2}, {2, 0}, {0, 2}}};
///
/// Models come together if each rank reaches each other along the edges. Memory: the graph on each rank. Errors:
/// `contract_violation` from `bind` if an edge has an end outside, is given twice, or leads from a rank to itself.
/// Source: Nedić and Olshevsky 2016; SGP (Assran et al. 2019).
struct directed {
    static constexpr const char* name = "directed";
    static constexpr bool is_doubly_stochastic = false;
    static constexpr bool is_symmetric = false;
    static constexpr bool keeps_neighbours = true;

    std::vector<std::array<rank_t, 2>> edges{};

    class bound {
      public:
        RILL_CONSTEXPR_VECTORS bound(int size, std::span<const std::array<rank_t, 2>> edges)
            : rows_(static_cast<std::size_t>(detail::checked_size(size))) {
            for (const auto& [from, to] : edges) {
                RILL_EXPECTS(0 <= from && from < size && 0 <= to && to < size,
                             "topology::directed: an edge leads outside");
                RILL_EXPECTS(from != to, "topology::directed: an edge leads from a rank to itself");
                row(from).receivers.push_back(to);
            }
            for (rank_t from = 0; from < size; ++from) {
                auto& receivers = row(from).receivers;
                std::sort(receivers.begin(), receivers.end());
                RILL_EXPECTS(std::adjacent_find(receivers.begin(), receivers.end()) == receivers.end(),
                             "topology::directed: an edge is given twice");
                row(from).own_weight = 1.0 / static_cast<double>(1 + receivers.size());
                for (const rank_t to : receivers) row(to).senders.push_back({from, row(from).own_weight});
            }
        }
        RILL_CONSTEXPR_VECTORS void fill(std::uint64_t, rank_t rank, mixing_row& into) { into = row(rank); }

      private:
        RILL_CONSTEXPR_VECTORS mixing_row& row(rank_t rank) { return rows_[static_cast<std::size_t>(rank)]; }

        std::vector<mixing_row> rows_;
    };

    RILL_CONSTEXPR_VECTORS bound bind(int size, random_key) const { return {size, edges}; }
    template <class Visit>
    RILL_CONSTEXPR_VECTORS void visit_options(Visit&& visit) const {
        for (const auto& [from, to] : edges) {
            visit("from", from);
            visit("to", to);
        }
    }
    friend bool operator==(const directed&, const directed&) = default;
};

static_assert(Mixing<directed>);

}}}  // namespace rill::RILL_ABI::topology
