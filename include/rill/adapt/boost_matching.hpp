#pragma once

#include <rill/concept/matcher.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/max_cardinality_matching.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace adapt {

/// Boost.Graph's maximum cardinality matching: Edmonds' algorithm, begun with a greedy matching. Models `Matcher`.
///
///     rill::topology::bandwidth_matching fast{.links = links, .least = 3e6, .matcher = rill::adapt::boost_matching{}};
///
/// Cost: O(m n α) steps for n ranks and m edges at most. Other versions of Boost may find other matchings of a graph.
struct boost_matching {
    static constexpr const char* name = "boost_matching";

    static std::vector<rank_t> match(int ranks, std::span<const std::array<rank_t, 2>> edges) {
        using graph = ::boost::adjacency_list<::boost::vecS, ::boost::vecS, ::boost::undirectedS>;
        using vertex = ::boost::graph_traits<graph>::vertex_descriptor;
        graph all(static_cast<std::size_t>(ranks));
        for (const auto& [a, b] : edges) add_edge(static_cast<vertex>(a), static_cast<vertex>(b), all);
        std::vector<vertex> mates(num_vertices(all));
        const auto mate_of = ::boost::make_iterator_property_map(mates.begin(), get(::boost::vertex_index, all));
        ::boost::matching<graph, decltype(mate_of), decltype(get(::boost::vertex_index, all)),
                          ::boost::edmonds_augmenting_path_finder, ::boost::greedy_matching,
                          ::boost::no_matching_verifier>(all, mate_of, get(::boost::vertex_index, all));
        std::vector<rank_t> partners;
        for (const vertex mate : mates)
            partners.push_back(mate == ::boost::graph_traits<graph>::null_vertex() ? no_rank
                                                                                   : static_cast<rank_t>(mate));
        return partners;
    }

    friend constexpr bool operator==(boost_matching, boost_matching) = default;
};
static_assert(Matcher<boost_matching>);

}}}  // namespace rill::RILL_ABI::adapt
